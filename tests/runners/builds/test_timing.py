"""One build against a copy of itself: whatever differs between their lanes must not look like a difference in speed."""

from collections import Counter

import pytest

from boosters_eval import LocalPool, TrainingConfig, compare
from boosters_eval.programs.benchmark.comparisons import compare_rows
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.stats.inference import holm
from wheels import repacked

pytestmark = pytest.mark.slow

TRIES = 100
SPLITS = 10
SECTION = "One build and a copy of itself are told apart by their times"


@pytest.mark.filterwarnings("ignore::boosters_eval.BoostersEvalWarning")  # this machine may be busy
@pytest.mark.parametrize("first", ["a copy", "installed"])
def test_build_and_its_copy_are_told_apart_by_their_times_in_at_most_six_percent(home, tmp_path, simulated, first):
    """Each try is a run with lanes of its own: what the memory layout of a lane does to its times must not count.

    What the program says is counted: any difference in the table, and whether the second fails --against the first.
    Each of the two tests alone is one at 5 %, so that of 100 tries it may tell apart more than six by chance.
    """
    copies = [f"{note}=lightgbm@{repacked('lightgbm', 'lightgbm', tmp_path, note)}" for note in ("one", "other")]
    competitors = copies if first == "a copy" else ["lightgbm", copies[1]]
    told = Counter()
    for number in range(TRIES):
        with LocalPool(1) as pool:
            done = compare(
                "breast_cancer",
                competitors,
                seeds=SPLITS,
                training=TrainingConfig(n_estimators=50, seed=number),
                timing_mode=True,
                threads=1,
                executor=pool,
            )
        assert not done.errors
        told.update(_called(done))
    of = "a copy" if first == "a copy" else "a build of itself"
    for what, count in {**dict.fromkeys(PROMISED, 0), **told}.items():
        rate = simulated(SECTION, f"{what}, lightgbm against {of}, {SPLITS} splits", count, TRIES, PROMISED[what][0])
        assert rate <= PROMISED[what][1]


PROMISED = {
    "the table": ("≤ 6 %", 0.06),
    "--against": ("≤ 6 %", 0.06),
    "train_time_s alone": ("5 %", 0.05 + 3 * 0.022),  # three standard errors
    "predict_time_s alone": ("5 %", 0.05 + 3 * 0.022),
}


def _called(done):
    """By what the two were told apart, whether or not other programs disturbed the times."""
    rows = {}
    for result in done.results:
        rows.setdefault(result.library, []).append(result)
    assert {len(results) for results in rows.values()} == {SPLITS}
    (table,) = build_tables(done).tables
    if any(pair.verdict in {"better", "worse"} for pair in table.pairs):
        yield "the table"
    pairs = {
        metric: compare_rows(rows, metric, higher_is_better=False, alpha=0.05, test="paired").get(*rows)
        for metric in ("train_time_s", "predict_time_s")
    }
    alone = {metric: pair.verdict in {"better", "worse"} for metric, pair in pairs.items()}
    yield from (f"{metric} alone" for metric, told in alone.items() if told)
    corrected = holm([pair.p_value for pair in pairs.values()])
    # The first is better where the second is worse.
    if any(pair.verdict == "better" and p <= 0.05 for pair, p in zip(pairs.values(), corrected, strict=True)):
        yield "--against"
