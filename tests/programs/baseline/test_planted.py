"""Real regressions, planted in a real library: each is found, and the message says what moved."""

import json
import re
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import damaged_runners
from boosters_eval import BenchmarkConfig, BenchmarkSuite, DatasetConfig, Task, check_baseline, record_baseline
from boosters_eval.core.errors import FileFormatError, RunError
from boosters_eval.datasets import Table
from boosters_eval.programs.baseline import sidecar
from boosters_eval.programs.baseline.document import verdict_line
from boosters_eval.programs.baseline.evidence import RecordedSide
from boosters_eval.programs.baseline.findings import Status
from boosters_eval.programs.baseline.model import load_baseline
from boosters_eval.programs.baseline.sidecar import PredictionsFile, list_kept, locate_sidecar
from boosters_eval.programs.benchmark.suites import QUICK_SUITE, _plain
from boosters_eval.runners import RUNNERS

CA, BC, IRIS = "california/gbdt", "breast_cancer/gbdt", "iris/gbdt"
TRAINING = QUICK_SUITE.configs[0].training
SUITE = BenchmarkSuite(
    name="planted",
    configs=tuple(_plain(name, TRAINING, ("lightgbm",)) for name in ("california", "breast_cancer", "iris")),
    default_seeds=3,
)


ROWS = 3000


def _table(kind):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(ROWS, 5)).astype(np.float32)
    wanted, weights = 2 * x[:, 0] + np.sin(3 * x[:, 1]) + x[:, 2] * x[:, 3], None
    if kind == "missing":  # what is missing tells something, and a third of the rows miss nothing
        gone = rng.random(x.shape) < 0.2
        wanted, x = wanted + 3 * gone[:, 0], np.where(gone, np.float32(np.nan), x)
    if kind == "weighted":
        heavy = rng.random(ROWS) < 0.3
        wanted, weights = np.where(heavy, wanted, -wanted), np.where(heavy, 5.0, 0.2)
    noise = 4 if kind == "stopped" else 1  # of which more rounds learn more
    return Table(x, wanted + noise * rng.normal(size=ROWS), weights=weights)


STOPPED = TRAINING.replace(n_estimators=200, learning_rate=0.3, early_stopping_rounds=5)
KINDS = ("plain", "missing", "weighted", "stopped")
SPECIAL = BenchmarkSuite(
    name="special",
    configs=tuple(
        BenchmarkConfig(
            name=kind,
            dataset=DatasetConfig(name=kind, task=Task.REGRESSION, loader=partial(_table, kind)),
            task=Task.REGRESSION,
            training=STOPPED if kind == "stopped" else TRAINING,
            libraries=("lightgbm",),
        )
        for kind in KINDS
    ),
    default_seeds=3,
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A baseline of LightGBM as it is, and its home."""
    place = tmp_path_factory.mktemp("planted")
    record_baseline(place / "b.json", suite=SUITE, home=place / "home", jobs=2)
    record_baseline(place / "special.json", suite=SPECIAL, home=place / "home", jobs=2)
    return place


@pytest.fixture(scope="module")
def checked(recorded):
    """The check of LightGBM after a change, and its findings by config; the same question is asked once."""
    known = {}

    def check(change, file="b.json", suite=SUITE, **options):
        asked = change, file, repr(options), locate_sidecar(recorded / file).exists()
        if asked not in known:
            before = RUNNERS["lightgbm"]
            RUNNERS.register("lightgbm", change, replace=True)
            try:
                known[asked] = check_baseline(recorded / file, suite=suite, home=recorded / "home", jobs=2, **options)
            finally:
                RUNNERS.register("lightgbm", before, replace=True)
        return known[asked], {finding.config: finding for finding in known[asked].findings}

    return check


@pytest.mark.parametrize(
    ("change", "config", "status", "cause"),
    [
        (damaged_runners.FewerTrees, CA, Status.REGRESSION, "trees 50 → 35"),
        (damaged_runners.BaseScoreOff, CA, Status.REGRESSION, "all predictions moved alike, by +0.3"),
        (damaged_runners.BaseScoreOff, BC, Status.UNDECIDED, "all log odds moved alike, by +0.5"),
        (damaged_runners.NoBaseScore, CA, Status.DRIFT, "lower on average: the base score"),
        (damaged_runners.OneClassIgnored, IRIS, Status.REGRESSION, "class 1 is never predicted any more"),
        (damaged_runners.LabelsSwapped, BC, Status.REGRESSION, "classes 0 and 1 changed places: the labels"),
        (damaged_runners.SlowLearner, CA, Status.DRIFT, "each tree learns less (learning rate"),
        (damaged_runners.WrongDefault, CA, Status.REGRESSION, "with as many trees: a limit on their growth"),
    ],
)
def test_a_planted_regression_is_found_and_the_cause_is_told(checked, change, config, status, cause):
    found, pairs = checked(change)
    assert pairs[config].status is status
    assert cause in "; ".join(pairs[config].cause)
    assert cause in str(found)
    assert cause in verdict_line(found)


@pytest.mark.parametrize(
    ("change", "moved", "cause"),
    [
        (damaged_runners.WeightsLost, {"weighted": Status.REGRESSION}, "those that weigh much worse: the weights"),
        (damaged_runners.MissingReadAsZero, {"missing": Status.REGRESSION}, "of the predictions moved, the others are"),
        (damaged_runners.StoppingIgnored, {"stopped": Status.REGRESSION}, " → 200"),
        (
            damaged_runners.HalfOfTheRows,
            dict(zip(KINDS, (Status.REGRESSION, Status.REGRESSION, Status.UNDECIDED, Status.WITHIN), strict=True)),
            "",
        ),
    ],
)
def test_what_is_lost_of_the_data_is_told_where_it_matters_and_nothing_else_moved(checked, change, moved, cause):
    found, pairs = checked(change, "special.json", SPECIAL)
    assert {config: pair.status for config, pair in pairs.items() if not pair.identical} == moved
    assert all(cause in "; ".join(pairs[config].cause) for config in moved)
    assert ("the weights" in str(found)) == (change is damaged_runners.WeightsLost)
    assert "base score" not in str(found)


def test_what_did_not_move_is_said_to_be_bit_identical(checked):
    found, pairs = checked(damaged_runners.OneClassIgnored)
    assert [pairs[config].identical for config in (CA, BC, IRIS)] == [True, True, False]
    assert found.exit_code == 1
    nothing, _ = checked(RUNNERS["lightgbm"])
    assert str(nothing).endswith("3 pairs compared (tolerance 2 %), all bit-identical")


def test_since_when_it_is_so_and_the_next_command_are_told(checked, recorded):
    found, pairs = checked(damaged_runners.FewerTrees)
    assert re.fullmatch(r"new in this run; run \w+ \(.*\) still predicted as recorded", pairs[CA].since)
    assert pairs[CA].since in str(found)
    bisect, command = found.next  # the commit is the recorded one, so the change is in the library's own sources
    assert bisect.startswith(
        "with the sources of lightgbm: boosters-eval bisect --library lightgbm --dataset california"
    )
    assert "--folder SOURCES --commits GOOD..BAD" in bisect
    assert command.startswith(f"if it is intended: boosters-eval baseline update {recorded / 'b.json'} --run ")


def test_what_rows_do_not_show_fails_unless_only_what_is_shown_may(checked):
    plain, pairs = checked(damaged_runners.BaseScoreOff)
    assert pairs[BC].by_rows
    assert pairs[BC].fails
    lenient, pairs = checked(damaged_runners.BaseScoreOff, statistical=True)
    assert (pairs[BC].status, pairs[BC].fails, pairs[CA].fails) == (Status.UNDECIDED, False, True)
    assert plain.exit_code == lenient.exit_code == 1
    only, _ = checked(damaged_runners.BaseScoreOff, statistical=True, tolerance_for={CA: 0.5})
    assert only.exit_code == 0


def test_without_the_file_of_predictions_the_tolerance_decides(recorded, checked):
    place = locate_sidecar(recorded / "b.json")
    aside = place.rename(place.with_suffix(".aside"))
    try:
        found, pairs = checked(damaged_runners.BaseScoreOff, statistical=True)
    finally:
        aside.rename(place)
    assert found.without == "the baseline"
    assert not pairs[BC].by_rows
    assert pairs[BC].fails


def test_the_file_of_predictions_is_small_and_whole(recorded):
    baseline, place = load_baseline(recorded / "b.json"), locate_sidecar(recorded / "b.json")
    assert PredictionsFile(place).digests == set(list_kept(baseline))
    assert place.stat().st_size < 1e6
    fits = [fit for result in baseline.results for fit in result.fits.values()]
    assert {fit.rounds for fit in fits} == {50}
    assert all(fit.leaves and fit.training and fit.predictions for fit in fits)
    assert all(result.build and result.build.digest for result in baseline.results)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros(3), "is not its rows"),
        (np.zeros(3, [("rows", "<i8"), ("y_true", "<f8"), ("more", "<f8")]), "is not its rows"),
        (np.zeros(3, [("rows", "S4"), ("y_true", "<f8")]), "is not its rows"),
        (np.zeros(3, [("rows", "<i8"), ("y_true", "<f8")]), "not one prediction per row"),
    ],
)
def test_arrays_of_another_shape_under_their_own_digest_are_refused(recorded, array, sentence):
    class Store:
        def find(self, digest):
            return array

    record = load_baseline(recorded / "b.json").results[0]
    with pytest.raises(RunError, match=sentence):
        RecordedSide(record, Store()).read(next(iter(record.fits)))


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_archive_that_was_damaged_is_one_sentence_however_it_is_compressed(tmp_path, way):
    path = tmp_path / "b.predictions.npz"
    with zipfile.ZipFile(path, "w", way) as file:
        file.writestr("a.npy", bytes(range(256)) * 40)
    data = bytearray(path.read_bytes())
    data[60:80] = b"\xff" * 20
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"is damaged|was changed|does not use"):
        PredictionsFile(path).find("a")


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_archive_that_inflates_to_more_than_it_says_takes_no_more_memory(tmp_path, way):
    path = tmp_path / "b.predictions.npz"
    with zipfile.ZipFile(path, "w", way) as file:
        with file.open("a.npy", "w") as bomb:
            for _ in range(64):
                bomb.write(bytes(2**20))
        file.filelist[0].file_size = 1000  # what the list of the archive says
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"is damaged|was changed|does not use"):
        PredictionsFile(path).find("a")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_archive_of_endless_names_is_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sidecar, "_MOST_ARRAYS", 3)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        for number in range(4):
            file.writestr(str(number), b"")
    with pytest.raises(FileFormatError, match="has more arrays than any file of predictions"):
        PredictionsFile(tmp_path / "x.npz")


def test_predictions_that_were_changed_are_refused(recorded, tmp_path):
    source = locate_sidecar(recorded / "b.json")
    with zipfile.ZipFile(source) as file, zipfile.ZipFile(tmp_path / "b.predictions.npz", "w") as forged:
        for index, name in enumerate(file.namelist()):
            content = bytearray(file.read(name))
            content[-1] ^= index == 0
            forged.writestr(name, bytes(content))
            first = first if index else name.removesuffix(".npy")  # noqa: F821 (of the first round)
    with pytest.raises(FileFormatError, match="was changed"):
        PredictionsFile(tmp_path / "b.predictions.npz").find(first)
    Path(tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match="not a file of predictions"):
        PredictionsFile(tmp_path / "x.npz")


def test_a_pair_whose_run_is_not_named_is_refused(recorded, tmp_path):
    raw = json.loads((recorded / "b.json").read_text())
    raw["results"][0]["source"] = "nobody/1"
    (tmp_path / "b.json").write_text(json.dumps(raw))
    with pytest.raises(FileFormatError, match="nobody/1"):
        load_baseline(tmp_path / "b.json")
