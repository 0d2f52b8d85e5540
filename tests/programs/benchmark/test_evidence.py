"""What fits predicted is kept without loss, beside the journal, and read back as it was scored."""

import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from boosters_eval import Executor, Task, compare, load_run, prune_runs, rescore, run_prepared, verify_run
from boosters_eval.engine.artifacts import load_array, locate_array
from boosters_eval.engine.runs import find_run, verify
from boosters_eval.engine.session import KnownOutcomes, open_session
from boosters_eval.metrics import compute_metrics
from boosters_eval.programs.benchmark.evidence import (
    FitEvidence,
    SplitRows,
    keep_rows,
    pack_rows,
    read_evidence,
    unpack_rows,
)
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.runs import collect, run_once
from boosters_eval.programs.benchmark.tables.against import AgainstDocument, list_findings
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.programs.runs import manage
from boosters_eval.programs.runs.request import VerifyRequest
from tiny import FEW, prepare_tiny, run_tiny, shared_pool, tiny_config

FINITE = {"allow_nan": False, "allow_infinity": False}
floats = st.one_of(st.floats(width=32, **FINITE), st.floats(**FINITE), st.sampled_from([0.0, 1.0, -0.0, 255.0, 1e300]))


def faults(folder):
    return {name: fault for name, fault in verify(folder) if fault}


def arrays(folder):
    return sorted(folder.predictions.rglob("*.npy"))


@given(
    npst.arrays(np.float32, npst.array_shapes(max_dims=2), elements=st.floats(width=32, **FINITE)),
    npst.arrays(np.float64, npst.array_shapes(max_dims=2), elements=floats),
)
def test_predictions_come_back_bit_for_bit_in_four_bytes_where_they_serve(tmp_path_factory, narrow, wide):
    folder = tmp_path_factory.mktemp("kept")
    for predictions in (narrow, wide, narrow.astype(np.float64)):
        kept = keep_rows(folder, SplitRows(np.arange(len(predictions)), np.zeros(len(predictions))), predictions)
        found = load_array(folder, kept.predictions)
        assert found.astype(np.float64).tobytes() == predictions.astype(np.float64).tobytes()
        with np.errstate(over="ignore"):
            exact = np.array_equal(predictions.astype(np.float32), predictions)
        assert found.dtype == (np.float32 if exact else np.float64)


codes = st.integers(-(2**40), 2**40)


@given(st.data(), st.integers(1, 20))
def test_rows_of_a_split_come_back_as_they_were(data, n):
    def column(dtype, elements):
        return data.draw(npst.arrays(dtype, n, elements=elements))

    def maybe(dtype, elements):
        return column(dtype, elements) if data.draw(st.booleans()) else None

    given_rows = SplitRows(
        rows=column(np.int64, st.integers(0, 2**33)),
        y_true=column(np.float64, st.one_of(floats, st.integers(0, 9).map(float))),
        weights=maybe(np.float64, floats),
        queries=maybe(np.int64, codes),
        groups=maybe(np.int64, codes),
        sensitive=maybe(np.int64, codes),
    )
    found = unpack_rows(pack_rows(given_rows))
    for name in SplitRows.__dataclass_fields__:
        before, after = getattr(given_rows, name), getattr(found, name)
        assert (before is None) == (after is None)
        if before is not None:
            np.testing.assert_array_equal(before, after)
            assert before.dtype == after.dtype
    assert found.units is (found.queries if found.groups is None else found.groups)


def test_equal_arrays_are_stored_once_and_classes_take_a_byte(tmp_path):
    split = SplitRows(np.arange(1000), np.arange(1000) % 3 / 1.0)
    first = keep_rows(tmp_path, split, np.full((1000, 3), 0.5))
    assert keep_rows(tmp_path, split, np.full((1000, 3), 0.5)) == first
    sizes = sorted(path.stat().st_size for path in tmp_path.rglob("*.npy"))
    assert sizes == [3 * 1000 + 128, 4 * 3000 + 128]  # two bytes of row number and one of class; a header each


def evidence_of(results):
    evidence = read_evidence(results)
    return [evidence.of(result) for result in results.results]


TASKS = ["iris", "breast_cancer", "diabetes", "synthetic_rank_small", "synthetic_quantile_small"]


def test_metrics_of_what_was_kept_are_those_of_the_run_bit_for_bit(home):
    compare(TASKS, ["boosters", "lightgbm"], seeds=2, training=FEW)
    results = load_run("last")
    for result, found in zip(results.results, evidence_of(results), strict=True):
        split = found.split
        assert len(split.rows) == result.n_valid == len(found.predictions)
        classes = {Task.BINARY: 2, Task.MULTICLASS: 3}.get(result.task)
        scored = compute_metrics(
            result.task,
            split.y_true,
            found.predictions,
            classes,
            split.weights,
            groups=split.queries,
            quantiles=(0.1, 0.5, 0.9) if result.task is Task.QUANTILE else (),
        )
        assert scored
        assert result.metrics == scored
        assert (split.units is None) == (result.task is not Task.RANKING)
        by_rows = found.score(result.primary_metric)
        assert by_rows.value == pytest.approx(result.metrics[result.primary_metric], rel=1e-12)
        assert (by_rows.folds, set(by_rows.rows) <= set(split.rows)) == (pytest.approx(5, rel=0.3), True)
    whole = sum(path.stat().st_size - 128 for path in arrays(find_run("last")))
    rows = sum(found.predictions.size for found in evidence_of(results))
    assert whole < 8 * rows + 16 * rows / 2  # a split is stored once for both libraries


def test_frames_in_memory_keep_targets_weights_and_groups(home):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.standard_normal((200, 3)), columns=list("abc"))
    frame["y"] = frame.a + rng.standard_normal(200)
    frame["who"] = rng.integers(0, 25, 200)
    results = compare(frame, "boosters", target="y", split="group:who", seeds=2, training=FEW)
    for result, found in zip(results.results, evidence_of(results), strict=True):
        np.testing.assert_array_equal(found.split.y_true, frame.y.to_numpy()[found.split.rows])
        counts = frame.who.to_numpy()[found.split.rows]
        assert len(set(zip(counts, found.split.units, strict=True))) == len(set(counts))  # one code for each group
        assert found.split.weights is None
        assert result.n_train == 200 - len(found.split.rows)


def test_without_predictions_the_run_is_the_same_and_says_why_there_are_none(faulty, home):
    kept = run_tiny(tiny_config("none"), seeds=2)
    folder = find_run(kept.run_id)
    without = run_tiny(tiny_config("none"), seeds=2, predictions=False)
    assert without.run_id == kept.run_id
    assert [result.metrics for result in without.results] == [result.metrics for result in kept.results]
    assert {found.kind for found in evidence_of(without)} == {"left out"}
    assert all(isinstance(found, FitEvidence) for found in evidence_of(kept))
    assert faults(folder) == {}
    file = ResultCollection.from_json(kept.to_json())
    assert {found.kind for found in evidence_of(file)} == {"elsewhere"}
    assert [type(found) for found in evidence_of(kept.filter(library="faulty"))] == [FitEvidence] * 2


class Interrupting(Executor):
    """A pool whose cells end, and whose program is gone before the outcome of one of them is in the journal."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def run(self, works, started):
        for number, outcome in enumerate(shared_pool(1).run(works, started)):
            if number == self.after:
                raise KeyboardInterrupt
            yield outcome

    def close(self):
        """The pool stays."""


def test_between_the_arrays_and_the_line_of_the_journal_nothing_is_lost(faulty, home):
    whole = run_tiny(tiny_config("none"), seeds=3)
    before = [found.predictions for found in evidence_of(whole)]
    folder = find_run(whole.run_id)
    for after in range(3):
        shutil.rmtree(folder.path)
        with pytest.raises(KeyboardInterrupt):
            run_prepared(prepare_tiny(tiny_config("none"), seeds=3), executor=Interrupting(after))
        part = load_run("last")
        assert len(part.results) == after
        assert all(isinstance(found, FitEvidence) for found in evidence_of(part))
        assert len(arrays(folder)) == 2 * (after + 1)  # the arrays of the cell that has no line are there already
        resumed = run_tiny(tiny_config("none"), seeds=3, resume=True)
        for one, other in zip(before, evidence_of(resumed), strict=True):
            np.testing.assert_array_equal(one, other.predictions)
        assert len(arrays(folder)) == 6
        assert faults(folder) == {}


KILLED = """
import os, signal, sys
from boosters_eval import compare
from boosters_eval.engine.journal import Journal
append, left = Journal.append, [2]
def dying(self, outcome, workload):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    append(self, outcome, workload)
Journal.append = dying
if __name__ == "__main__":
    compare("iris", "boosters", seeds=4, jobs=1)
"""


def test_a_killed_program_is_continued_with_all_predictions(home, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    assert subprocess.run([sys.executable, str(script)], check=False).returncode == -signal.SIGKILL
    assert [type(found) for found in evidence_of(load_run("last"))] == [FitEvidence] * 2
    resumed = compare("iris", "boosters", seeds=4, jobs=1, resume=True)
    assert [type(found) for found in evidence_of(resumed)] == [FitEvidence] * 4
    assert faults(find_run("last")) == {}


def test_verify_and_evidence_detect_what_was_changed_or_is_missing(faulty, home):
    results = run_tiny(tiny_config("none"), seeds=2)
    folder = find_run(results.run_id)
    first, second = (result.kept for result in results.results)
    changed = locate_array(folder.predictions, first.predictions)
    changed.write_bytes(changed.read_bytes()[:-1] + b"x")
    locate_array(folder.predictions, second.rows).unlink()
    found = faults(folder)
    assert found.keys() == {f"predictions/{first.predictions}", f"predictions/{second.rows}"}
    assert "was changed after it was written" in found[f"predictions/{first.predictions}"]
    assert [item.kind for item in evidence_of(load_run("last"))] == ["lost", "lost"]
    again = run_tiny(tiny_config("none"), seeds=2)  # whoever has the arrays mends them
    assert faults(folder) == {}
    assert all(isinstance(item, FitEvidence) for item in evidence_of(again))


def test_what_was_pruned_is_absent_not_lost_until_it_is_made_again(faulty, home):
    results = run_tiny(tiny_config("none"), seeds=2)
    folder = find_run(results.run_id)
    assert prune_runs(predictions=True, dry_run=True).things[0].name == results.run_id
    assert arrays(folder)
    assert prune_runs(predictions=True).removed == (results.run_id,)
    assert prune_runs(predictions=True).things == ()
    assert arrays(folder) == []
    assert faults(folder) == {}
    assert [found.kind for found in evidence_of(load_run("last"))] == ["removed", "removed"]
    again = run_tiny(tiny_config("none"), seeds=2)
    assert all(isinstance(found, FitEvidence) for found in evidence_of(again))
    arrays(folder)[0].unlink()
    assert len(faults(folder)) == 1  # of both attempts, which name the same array


def test_scores_stay_where_predictions_cannot_be_written(faulty, home):
    prepared = prepare_tiny(tiny_config("none"))
    folder = home / "runs" / prepared.plan.run_id
    folder.mkdir(parents=True)
    (folder / "predictions").write_text("no folder")
    results = run_tiny(tiny_config("none"))
    assert results.results[0].kept is None
    assert "its predictions were not kept: Cannot write" in results.results[0].warnings[0]
    assert evidence_of(results)[0].kind == "left out"


def test_looks_of_one_run_share_their_arrays_and_know_what_is_gone(faulty, home):
    small, large = (prepare_tiny(tiny_config("none"), seeds=seeds) for seeds in (2, 4))
    with open_session(small.settings, small.plan) as session:
        first = run_once(session, small)
        second = run_once(session, large, known=KnownOutcomes(first.outcomes, first.machines, None, first.kept_in))
        assert [type(found) for found in evidence_of(collect(second))] == [FitEvidence] * 4
        assert all(path.stat().st_nlink == 2 for path in arrays(first.folder))
        prune_runs(first.plan.run_id, predictions=True)
        assert [type(found) for found in evidence_of(collect(second))] == [FitEvidence] * 4
        assert faults(second.folder) == {}
        shutil.rmtree(second.folder.path)
        third = run_once(session, large, known=KnownOutcomes(first.outcomes, first.machines, None, first.kept_in))
    assert [getattr(found, "kind", "") for found in evidence_of(collect(third))] == ["removed", "removed", "", ""]
    assert faults(third.folder) == {}


def notes_of(results, test="rows"):
    return " ".join(note for table in build_tables(results, test=test).tables for note in table.notes)


def test_verdicts_without_predictions_say_that_splits_decided(home):
    asked = {"datasets": "diabetes", "libraries": ["sklearn", "boosters"], "seeds": 3, "jobs": 1}
    said = "judged by splits, not by rows: its predictions were not kept"
    without = compare(**asked, predictions=False)
    assert f"{said}." in notes_of(without)
    assert f"J{said[1:]}." in " ".join(build_tables(without).answer)  # and so wherever the answer is shown
    check = without.regressions("sklearn")
    assert said in list_findings(check)[-1]
    written = AgainstDocument.of(check, without.run_id)
    assert (written.test, written.comparisons[0].test, written.comparisons[0].note) == ("corrected", "corrected", said)
    told = build_document(without)
    assert (told.data.test, told.data.disjoint) == ("corrected", True)
    assert dict(told.configuration)["Test"] == "paired t-test by splits, with the luck of the training"
    kept = compare(**asked)
    assert AgainstDocument.of(kept.regressions("sklearn"), kept.run_id).test == "rows"
    assert "judged by splits" not in notes_of(kept)
    assert "judged by splits" not in notes_of(kept, test="corrected")  # as asked
    odd = rescore(kept.run_id, "median_ae")
    assert "Median AE: judged by splits, not by rows: this metric is not computed row by row." in notes_of(odd)
    prune_runs(kept.run_id, predictions=True)
    assert "not by rows: its predictions were removed." in notes_of(load_run(kept.run_id))
    assert [name for name, fault in verify_run(kept.run_id) if fault] == []
    shown = manage.verify(VerifyRequest(reference=kept.run_id))
    assert shown.good == "complete and untouched; not checked: 9 arrays of predictions that were removed"


def test_a_metric_that_a_fold_does_not_define_warns_once_in_its_cell_and_not_in_the_verdict(home, recwarn):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "y": [1] * 3 + [0] * 57})
    results = compare(frame, ["sklearn", "boosters"], target="y", seeds=5, jobs=1)
    before = len(recwarn)
    build_tables(results)
    found = rescore(results.run_id, "average_precision")
    assert not [one for one in recwarn.list[before:] if "undefined" in str(one.message)]
    assert any("average_precision' is undefined" in text for one in found.results for text in one.warnings)
