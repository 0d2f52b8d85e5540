import math
from statistics import fmean, stdev

import pytest
from scipy import stats as scipy_stats

from boosters_eval.core.request import Repeat
from boosters_eval.programs.baseline.evidence import PairOfSides, RecordedSide, count_seeds_needed, weigh_pair
from boosters_eval.programs.baseline.snapshot import Snapshot
from boosters_eval.stats.significance import compare_pair

PAIR = ("california/gbdt", "boosters")
NOISE = (0.001, -0.002, 0.0, 0.003, -0.001)


def recorded(make, factor=1.0, **changes):
    """A record of five cells; `changes` is a function of the index of a cell."""
    run = make.run(seeds=5, libraries=("boosters",), configs=(PAIR[0],))
    run.results = [
        make.result(
            *PAIR, index, factor + (NOISE[index] if factor != 1 else 0), **{k: f(index) for k, f in changes.items()}
        )
        for index in range(5)
    ]
    return Snapshot.of_run(run).results[PAIR]


def evidence(then, now):
    sides = PairOfSides(RecordedSide(then), RecordedSide(now))
    return weigh_pair(sides, "rmse", statistical=True, alpha=0.05)


def test_the_p_value_is_that_of_the_corrected_test(make):
    then, now = recorded(make), recorded(make, 1.02)
    sides = (list(record.metrics["rmse"].per_seed.values()) for record in (now, then))
    expected = compare_pair(*sides, higher_is_better=False, test_train_ratio=0.25)
    found = evidence(then, now)
    assert (found.p_value, found.worse) == (expected.p_value, True)


def test_folds_are_cells_of_their_own(make):
    folds = {"seed": lambda index: 42, "fold": lambda index: index}
    then, now = recorded(make, **folds), recorded(make, 1.02, **folds)
    assert [Repeat.parse(name) for name in then.metrics["rmse"].per_seed] == [Repeat(42, fold) for fold in range(5)]
    drawn = evidence(recorded(make), recorded(make, 1.02))
    assert evidence(then, now).p_value < drawn.p_value  # folds share no test rows, so nothing is corrected for them


def test_seeds_on_one_official_split_are_too_few_for_a_test(make):
    official = {"split_digest": lambda index: "official"}
    found = evidence(recorded(make, **official), recorded(make, 1.02, **official))
    assert (found.p_value, found.worse) == (None, None)
    assert "too few cells for a test" in found.remark


def test_equal_accuracies_rule_out_only_what_so_few_rows_could_show(make):
    """With --seeds auto, equal scores on 30 rows were taken for a proof, and no further seed was run."""

    def worst(rows, metric="accuracy"):
        fields = {"metrics": {metric: 0.9}, "primary_metric": metric, "n_valid": rows, "n_train": 4 * rows}
        record = recorded(make, **{name: lambda _, value=value: value for name, value in fields.items()})
        found = weigh_pair(
            PairOfSides(RecordedSide(record), RecordedSide(record)), metric, statistical=True, alpha=0.05
        )
        assert (found.worse, found.remark) == (False if found.tested else None, "")
        return found.worst

    assert worst(30) < 0.98 * 0.9 < worst(3000) < 0.9
    assert worst(30, "rmse") is None


@pytest.mark.parametrize(
    ("name", "text"), [("data_digest", "the data is not"), ("split_digest", "the split of cell 42 ")]
)
def test_what_is_not_alike_is_not_tested(name, text, make):
    found = evidence(recorded(make), recorded(make, 1.02, **{name: lambda index: "other"}))
    assert found.obstacle.startswith(text)
    assert found.p_value is None


def noisy(make, spread, mean=1.03, **changes):
    run = make.run(seeds=5, libraries=("boosters",), configs=(PAIR[0],))
    run.results = [
        make.result(*PAIR, index, mean + spread * sign, **{k: f(index) for k, f in changes.items()})
        for index, sign in enumerate((1, -1, 2, -2, 0))
    ]
    return Snapshot.of_run(run).results[PAIR]


def test_the_seeds_that_would_decide_make_a_change_that_stays_as_it_is_significant(make):
    found = evidence(recorded(make), noisy(make, 0.015))
    assert found.worse is False
    needed = count_seeds_needed(found)
    assert needed == 15
    differences = [now - then for now, then in zip(*values(found), strict=True)]
    assert [student(differences, count) <= 0.05 for count in (5, needed - 1, needed)] == [False, False, True]


def student(differences, count):
    """The corrected p-value of so many splits with this mean and spread, by scipy."""
    error = stdev(differences) * math.sqrt(1 / count + 0.25)
    return 2 * scipy_stats.t.sf(fmean(differences) / error, min(count - 1, 10))


def values(found):
    return found.after.per_seed.values(), found.before.per_seed.values()


def test_where_shared_rows_limit_the_test_no_number_of_seeds_decides(make):
    assert count_seeds_needed(evidence(recorded(make), noisy(make, 0.1))) is None


def test_folds_count_as_the_seeds_that_they_belong_to(make):
    folds = {"seed": lambda index: (42, 1379)[index % 2], "fold": lambda index: index}
    found = evidence(recorded(make, **folds), noisy(make, 0.015, **folds))
    assert count_seeds_needed(found) == 6  # 13 cells at two and a half per seed


def test_a_user_s_metric_must_have_one_direction_on_both_sides(make):
    then, now = recorded(make), recorded(make, 1.02)
    rmse = then.metrics["rmse"]
    then, now = (
        side.model_copy(update={"primary_metric": "own", "metrics": {"own": rmse}, "higher_is_better": higher})
        for side, higher in ((then, True), (now, False))
    )
    found = weigh_pair(PairOfSides(RecordedSide(then), RecordedSide(now)), "own", statistical=False, alpha=0.05)
    assert found.obstacle == "the baseline says that more own is better, the run that less is"


def test_counted_metric_is_tested_with_at_least_one_row_of_noise(make):
    """One row of 200 fewer in every split looks like no noise at all, and is none of the proof that it seems."""
    scores = (0.90, 0.905, 0.895, 0.91, 0.90)
    then, now = (
        recorded(make, metrics=lambda index, lost=lost: {"rmse": 1.0, "accuracy": scores[index] - lost - 1e-5 * index})
        for lost in (0.0, 1 / 200)
    )
    found = weigh_pair(PairOfSides(RecordedSide(then), RecordedSide(now)), "accuracy", statistical=True, alpha=0.05)
    assert found.worse is False
