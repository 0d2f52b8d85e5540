"""One build against a copy of itself: whatever differs between their lanes must not look like a difference in speed."""

import pytest

from boosters_eval import LocalPool, TrainingConfig, compare
from boosters_eval.benchmark.observations import compare_rows
from boosters_eval.runners.targets import forget
from wheels import repacked

pytestmark = pytest.mark.slow

TRIES = 100
SPLITS = 10
SECTION = "One build and a copy of itself are told apart by their times"


@pytest.fixture(autouse=True)
def _no_copy_is_left():
    yield
    for label in ("one", "other"):
        forget(label)


@pytest.mark.filterwarnings("ignore::boosters_eval.BoostersEvalWarning")  # this machine may be busy
@pytest.mark.parametrize("first", ["a copy", "installed"])
def test_build_and_its_copy_are_told_apart_by_their_times_in_at_most_six_percent(home, tmp_path, simulated, first):
    """Each try is a run with lanes of its own: what the memory layout of a lane does to its times must not count."""
    copies = [f"{note}=lightgbm@{repacked('lightgbm', 'lightgbm', tmp_path, note)}" for note in ("one", "other")]
    competitors = copies if first == "a copy" else ["lightgbm", copies[1]]
    told = {"train_time_s": 0, "predict_time_s": 0}
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
        rows = {}
        for result in done.results:
            rows.setdefault(result.library, []).append(result)
        assert {len(results) for results in rows.values()} == {SPLITS}
        for metric in told:
            ((pair,),) = [compare_rows(rows, metric, higher_is_better=False, alpha=0.05).pairs.values()]
            told[metric] += pair.verdict in {"better", "worse"}
    for metric, count in told.items():
        claim = f"{metric}, lightgbm against {'a copy' if first == 'a copy' else 'a build of itself'}, {SPLITS} splits"
        assert simulated(SECTION, claim, count, TRIES, "≤ 6 %") <= 0.06
