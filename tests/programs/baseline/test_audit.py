"""Is a baseline what was recorded? Runs are written, not trained; predictions are made up."""

import io
import json
import zipfile
from datetime import datetime, timedelta

import numpy as np
import pytest

from boosters_eval.core.files import compute_digest
from boosters_eval.programs.baseline.audit import audit_baseline
from boosters_eval.programs.baseline.model import digest_content, digest_mapping, save_baseline
from boosters_eval.programs.baseline.sidecar import list_kept, locate_sidecar, save_sidecar
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.runs import collect
from boosters_eval.runners.result import KeptRows
from factories import digest
from written_runs import written_run


class Store(dict):
    find = dict.get


@pytest.fixture
def place(tmp_path):
    """A baseline with its predictions, and the run that it came from in a home."""
    arrays = [np.arange(3.0), np.arange(4.0)]
    kept = [_digest_of(array) for array in arrays]
    names = KeptRows(predictions=kept[0], rows=kept[1])
    folder = written_run(tmp_path / "home", predictions_digest=digest("p")[:16], kept=names)
    made = make_baseline(collect(folder.load()))
    save_sidecar(made, tmp_path / "b.json", [Store(zip(kept, arrays, strict=True))])
    save_baseline(made, tmp_path / "b.json")
    assert list_kept(made) == kept
    return tmp_path


def _digest_of(array):
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return compute_digest(content.getvalue(), 32)


def audit(place):
    return audit_baseline(place / "b.json", place / "home")


def rewrite(place, keep, more=None):
    """The file of predictions with some of its arrays, and others."""
    path = locate_sidecar(place / "b.json")
    with zipfile.ZipFile(path) as file:
        content = {name: file.read(name) for name in file.namelist()[:keep]}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in {**content, **(more or {})}.items():
            file.writestr(name, data)


def edit(place, change):
    raw = json.loads((place / "b.json").read_text())
    change(raw)
    raw["digest"] = digest_content(raw)
    (place / "b.json").write_text(json.dumps(raw))


def test_what_is_whole_has_no_fault_and_nothing_unchecked(place):
    assert (audit(place).faults, audit(place).unchecked) == ((), ())


def test_a_missing_file_of_predictions_is_unchecked(place):
    locate_sidecar(place / "b.json").unlink()
    assert audit(place).faults == ()
    assert audit(place).unchecked == ("b.predictions.npz with its predictions is not there",)


def test_a_baseline_that_names_no_predictions_misses_none(place):
    def forget(raw):
        for result in raw["results"]:
            for fit in result["fits"].values():
                fit["kept"] = None

    edit(place, forget)
    assert audit(place).faults[0] == "b.predictions.npz has 2 arrays that the baseline does not name"
    locate_sidecar(place / "b.json").unlink()
    assert audit(place).unchecked == ()
    (fault,) = audit(place).faults  # the run did keep them
    assert fault.startswith("'fits' of ")


def test_arrays_that_are_missing_are_counted(place):
    rewrite(place, 1)
    assert audit(place).unchecked == ("b.predictions.npz lacks 1 of 2 arrays",)
    assert audit(place).faults == ()


def test_arrays_that_nobody_named_are_a_fault(place):
    rewrite(place, 2, {f"{'0' * 32}.npy": b"anything"})
    assert audit(place).faults == ("b.predictions.npz has 1 array that the baseline does not name",)


def test_a_file_that_is_no_file_of_predictions_is_a_fault(place):
    locate_sidecar(place / "b.json").write_bytes(b"nothing")
    (fault,) = audit(place).faults
    assert "is not a file of predictions" in fault


def worsen(raw):
    stats = raw["results"][0]["metrics"]["rmse"]
    stats["per_seed"]["42"] += 0.006
    stats["mean"] += 0.001
    stats["std"] = float(np.std(list(stats["per_seed"].values()), ddof=1))


def predict(raw):
    raw["results"][0]["fits"]["1379"]["predictions"] = digest("q")[:16]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (worsen, "'metrics' of diabetes/gbdt boosters is not what run RUN has"),
        (predict, "'fits' of diabetes/gbdt boosters is not what run RUN has"),
        (
            lambda raw: raw["results"][0].update(n_valid=7),
            "'n_valid' of diabetes/gbdt boosters is not what run RUN has",
        ),
        (lambda raw: raw["results"][0].pop("n_valid"), "'n_valid' of diabetes/gbdt boosters is not what run RUN has"),
        (
            lambda raw: raw["libraries"]["boosters"].update(version="0.9"),
            "the version or build of boosters is not that of run RUN",
        ),
        (lambda raw: raw["config"].update(seeds=[42]), "'config' is not what run RUN has"),
        (lambda raw: raw.update(git_sha="abc"), "'git_sha' is not what run RUN has"),
    ],
)
def test_what_the_run_says_otherwise_is_a_fault_even_with_a_new_digest(place, change, fault):
    edit(place, change)
    (name,) = json.loads((place / "b.json").read_text())["sources"]
    assert audit(place).faults == (fault.replace("RUN", name),)


@pytest.mark.parametrize(
    ("later", "whole", "told"),
    [(timedelta(hours=1), False, "before its pairs were, or after"), (timedelta(days=400), True, "in the future")],
)
def test_a_baseline_is_not_younger_than_its_pairs_nor_than_today(place, later, whole, told):
    def date(raw):
        for part in (raw, *(raw["sources"].values() if whole else ())):
            part["recorded_at"] = (datetime.fromisoformat(part["recorded_at"]) + later).isoformat()

    edit(place, date)
    assert audit(place).faults == (f"it says that it was recorded {told}",)


@pytest.mark.parametrize("field", ["git_sha", "machine", "nothing"])
def test_a_pair_that_was_taken_out_is_not_vouched_for_and_hides_nothing_else(tmp_path, field):
    folder = written_run(tmp_path / "home", libraries=("boosters", "xgboost"))
    made = make_baseline(collect(folder.load()))
    save_baseline(made, tmp_path / "b.json")
    assert audit(tmp_path).unchecked == ()

    def take_out(raw):
        raw["results"].pop()
        raw["mapping_digest"] = digest_mapping(made.results[:-1])
        raw.update(
            {"git_sha": "abc"} if field == "git_sha" else {"machine": {"cores": 64}} if field == "machine" else {}
        )

    edit(tmp_path, take_out)
    name = next(iter(made.sources))
    assert audit(tmp_path).unproven == (f"why it lacks 1 pair of run {name}, and what it says of them",)
    assert audit(tmp_path).faults == (() if field == "nothing" else (f"'{field}' is not what run {name} has",))
    edit(tmp_path, lambda raw: raw.update(mapping_digest="0" * 16))
    assert "'mapping_digest' is not that of its parameters" in audit(tmp_path).faults


def test_pairs_of_a_file_and_of_another_home_are_unchecked(place):
    def forget(raw):
        raw["results"][0]["source"] = None
        raw["sources"] = {}

    there = audit_baseline(place / "b.json", place / "nowhere").unchecked
    assert len(there) == 1
    assert there[0].startswith("run ")
    assert there[0].endswith("which 1 pair came from, is not in this home")
    edit(place, forget)
    assert audit(place).unchecked == ("no run vouches for 1 pair",)
