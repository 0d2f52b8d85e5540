"""What moved, told from constructed predictions: nothing is trained."""

import numpy as np
import pytest

from boosters_eval.metrics.task import Task
from boosters_eval.programs.baseline.causes import explain_change
from boosters_eval.programs.baseline.evidence import PairOfSides, RecordedSide
from boosters_eval.programs.baseline.model import FitFacts
from boosters_eval.programs.benchmark.evidence import SplitRows, pack_rows
from boosters_eval.runners.result import KeptRows
from factories import baseline_result, digest, stats

RNG = np.random.default_rng(7)
N = 200
SIGNS = np.where(np.arange(N) % 2, 1.0, -1.0)
LABELS = {
    Task.REGRESSION: RNG.normal(size=N),
    Task.BINARY: (RNG.random(N) < 0.4).astype(float),
    Task.MULTICLASS: np.arange(N) % 3.0,
}
METRICS = {Task.REGRESSION: "rmse", Task.BINARY: "logloss", Task.MULTICLASS: "mlogloss"}


class Store(dict):
    find = dict.get


def side(task, predicted, *, metric=None, cells=("1", "2"), labels=None, weights=None, facts=None, **changes):
    """A pair whose cells predicted this, each on rows of its own; None: not kept."""
    store, fits = Store(), {}
    metric = metric or METRICS[task]
    for number, cell in enumerate(cells):
        kept = None
        if predicted is not None:
            y = LABELS[task] if labels is None else labels
            rows = SplitRows(rows=np.arange(N) + N * number, y_true=y, weights=weights)
            kept = KeptRows(
                predictions=digest("p", cell, predicted.tobytes())[:32], rows=digest("r", cell, task.value)[:32]
            )
            store |= {kept.predictions: predicted, kept.rows: pack_rows(rows)}
        said = digest(None if predicted is None else predicted.tobytes())[:16]
        fits[cell] = FitFacts(predictions=said, kept=kept, **(facts or {}))
    values = dict.fromkeys(cells, 0.5)
    known = {"task": task, "fits": fits, "n_train": 4 * N, "n_valid": N, "metrics": {metric: stats(values)}}
    return RecordedSide(baseline_result(metric=metric, **{**known, **changes}), store)


def explain(then, now, **known):
    return explain_change(PairOfSides(then, now), then.record.primary_metric, **known)


def about(task, factor=0.5):
    """Predictions that are right on average."""
    if task is Task.REGRESSION:
        return LABELS[task] + factor * np.cos(np.arange(N))
    if task is Task.BINARY:
        return np.where(LABELS[task] == 1, 0.7, 0.3)
    said = np.full((N, 3), 0.1)
    said[np.arange(N), LABELS[task].astype(int)] = 0.8
    return said


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda said: said + 0.3, "all predictions moved alike, by +0.3 on average: the base score"),
        (lambda said: said - 0.3, "all predictions moved alike, by -0.3 on average: the base score"),
    ],
)
def test_predictions_that_moved_alike_are_a_base_score(change, told):
    said = about(Task.REGRESSION)
    assert explain(side(Task.REGRESSION, said), side(Task.REGRESSION, change(said))) == (told,)


@pytest.mark.parametrize(("quarter", "name"), list(enumerate(["lowest", "second", "third", "highest"])))
def test_a_quarter_of_the_target_that_bears_the_loss_is_named(quarter, name):
    said, rank = about(Task.REGRESSION), LABELS[Task.REGRESSION].argsort().argsort() * 4 // N
    sides = [side(Task.REGRESSION, each, metric="mae") for each in (said, said + 2 * SIGNS * (rank == quarter))]
    told, part = explain(*sides)
    assert told == f"100 % of the loss is in the {name} quarter of the target"
    assert part.startswith("only 25 % of the predictions moved")


def test_quarters_that_lose_alike_are_not_told_apart():
    said, rank = about(Task.REGRESSION), LABELS[Task.REGRESSION].argsort().argsort() * 4 // N
    moved = said + 2 * SIGNS * np.isin(rank, (0, 3))
    moved = np.where(np.isin(rank, (1, 2)), LABELS[Task.REGRESSION], moved)  # what others gain makes no share larger
    assert explain(*(side(Task.REGRESSION, each, metric="mae") for each in (said, moved))) == ()


def test_a_loss_in_a_few_rows_is_said_to_be_in_these():
    said = about(Task.REGRESSION)
    sides = (side(Task.REGRESSION, each, metric="mae") for each in (said, said + 9 * (np.arange(N) == 4)))
    told, part = explain(*sides)
    assert told == "nearly all of the loss is in 4 rows of 400"
    assert part.startswith("only 0.5 % of the predictions moved")


def test_a_bias_among_other_changes_is_a_base_score_only_if_all_rows_have_it():
    said, steps = about(Task.REGRESSION), np.arange(N) % 4 == 0
    noise = 0.3 * np.cos(3 * np.arange(N))
    (told,) = explain(side(Task.REGRESSION, said), side(Task.REGRESSION, said + 0.3 + noise))
    assert told.startswith("predictions are 0.30")
    assert told.endswith(" higher on average: the base score")
    some = said + np.where(steps, 3.0, 0.01) + 0.01 * noise  # higher on average, but few rows are
    assert "base score" not in "".join(explain(side(Task.REGRESSION, said), side(Task.REGRESSION, some)))


def test_a_bias_that_later_trees_made_up_for_in_part_is_a_base_score_too():
    said = np.sort(about(Task.REGRESSION, factor=0.0))
    noise = 0.05 * np.cos(3 * np.arange(N))
    left = np.repeat((-0.03, 0.2, 0.22, 0.4), N // 4)  # of what training began with, by quarters
    (told,) = explain(side(Task.REGRESSION, said), side(Task.REGRESSION, said + left + noise))
    assert told.endswith(" higher on average: the base score")


def test_what_was_multiplied_is_no_base_score():
    said = 5 + about(Task.REGRESSION)
    assert explain(side(Task.REGRESSION, said), side(Task.REGRESSION, 1.03 * said)) == (
        "all predictions were multiplied by 1.03",
    )


LEARNED_LESS = {"trees": 50, "leaves": 700, "training": 0.3}, {"trees": 50, "leaves": 600, "training": 3.0}


@pytest.mark.parametrize(
    ("task", "change", "told"),
    [
        (Task.BINARY, lambda said: 1 - said, "classes 0 and 1 changed places: the labels"),
        (Task.REGRESSION, lambda said: 0.1 - 0.9 * said, "high and low predictions changed places: the labels"),
        (Task.MULTICLASS, lambda said: said[:, [1, 0, 2]], "classes changed places (0 → 1 and 1 → 0): the labels"),
        (Task.MULTICLASS, lambda said: np.roll(said, 1, axis=1), "changed places (0 → 1, 1 → 2 and 2 → 0)"),
        (Task.MULTICLASS, lambda said: np.roll(said, 1, axis=0), "the same predictions, but for other rows"),
        (Task.REGRESSION, lambda said: np.roll(said, 1), "the same predictions, but for other rows: their order"),
    ],
)
def test_predictions_that_changed_places_are_told_as_such_and_not_as_less_learning(task, change, told):
    varied = 1 + 0.1 * np.cos(np.arange(N))  # so that no two are alike
    said = about(task) ** varied[:, None] if task is Task.MULTICLASS else about(task) * varied
    said = said / said.sum(axis=1, keepdims=True) if task is Task.MULTICLASS else said
    then, now = (side(task, each, facts=facts) for each, facts in zip((said, change(said)), LEARNED_LESS, strict=True))
    (found,) = explain(then, now)
    assert told in found


def test_a_class_that_is_hardly_predicted_any_more_is_told_with_its_rows():
    said, mine = about(Task.MULTICLASS), LABELS[Task.MULTICLASS] == 1
    now = np.where((mine & (np.arange(N) > 30))[:, None], (0.5, 0.2, 0.3), said)
    now = now + 1e-6 * np.cos(np.arange(N))[:, None] * np.array((1, -1, 0))
    before = 2 * int(mine.sum())
    then, later = (side(Task.MULTICLASS, each, facts=one) for each, one in zip((said, now), LEARNED_LESS, strict=True))
    assert explain(then, later) == (f"class 1 is hardly predicted any more (20 rows, {before} before)",)


def test_where_nothing_that_was_recorded_moved_but_the_predictions_that_is_said():
    said, facts = about(Task.MULTICLASS), {"trees": 150, "leaves": 2000}
    right = np.eye(3)[LABELS[Task.MULTICLASS].astype(int)]
    now = said - 0.01 * right + 0.01 * np.roll(right, 1, axis=1)  # a little less of each right class
    sides = (side(Task.MULTICLASS, each, facts=facts) for each in (said, now))
    assert explain(*sides) == ("as many trees and leaves: what it predicts moved",)


def test_worse_training_beside_a_class_that_bears_the_loss_is_told_without_a_conclusion():
    said, mine = about(Task.MULTICLASS), LABELS[Task.MULTICLASS] == 2
    now = np.where(mine[:, None], (0.25, 0.25, 0.5), said * (1 + 1e-6 * np.cos(np.arange(3))))
    facts = [{"training": value} for value in (0.3, 0.4)]
    sides = (side(Task.MULTICLASS, each, facts=fact) for each, fact in zip((said, now), facts, strict=True))
    whose, learned = explain(*sides)
    assert "of class 2" in whose
    assert learned == "on training rows Log loss 0.3000 → 0.4000 (+33.3 %)"


def test_log_odds_that_moved_alike_are_a_base_score():
    said = about(Task.BINARY)
    moved = 1 / (1 + np.exp(-np.log(said / (1 - said)) - 0.4))
    assert explain(side(Task.BINARY, said), side(Task.BINARY, moved)) == (
        "all log odds moved alike, by +0.4 on average: the base score",
    )


def test_a_class_that_is_never_predicted_any_more_comes_first():
    said = about(Task.MULTICLASS)
    now = said.copy()
    now[:, 1] = 1e-3
    now /= now.sum(axis=1, keepdims=True)
    (told,) = explain(side(Task.MULTICLASS, said), side(Task.MULTICLASS, now))
    assert told == f"class 1 is never predicted any more ({2 * int((LABELS[Task.MULTICLASS] == 1).sum())} rows before)"


def test_a_class_that_is_never_predicted_any_more_explains_fewer_leaves_and_worse_training():
    said = about(Task.MULTICLASS)
    now = np.where(np.arange(3) == 1, 1e-3, said)
    now /= now.sum(axis=1, keepdims=True)
    then = side(Task.MULTICLASS, said, facts={"trees": 150, "leaves": 2000, "training": 0.3})
    (told,) = explain(then, side(Task.MULTICLASS, now, facts={"trees": 150, "leaves": 1500, "training": 9.0}))
    assert told.startswith("class 1 is never predicted any more")


def test_rows_of_little_weight_that_gain_while_others_lose_are_told_as_the_weights():
    y, light = LABELS[Task.REGRESSION], np.arange(N) % 2 == 0
    weights, noise = np.where(light, 0.2, 5.0), 0.5 * np.cos(np.arange(N))
    facts = [{"trees": 50, "leaves": leaves, "training": score} for leaves, score in ((700, 1.0), (800, 1.5))]
    near, far = (y + size * noise for size in (0.2, 2.0))
    then = side(Task.REGRESSION, np.where(light, far, near), weights=weights, facts=facts[0])
    now = side(Task.REGRESSION, np.where(light, near, far), weights=weights, facts=facts[1])
    assert explain(then, now) == (
        "rows that weigh little are predicted better, and those that weigh much worse: the weights",
    )
    assert "the weights" not in "".join(explain(then, now, only_weighted=False))  # what has none moved too
    all_worse = y + np.where(light, 3.0, 0.3) * noise
    worse = side(Task.REGRESSION, all_worse, weights=weights, facts=facts[1])
    assert "the weights" not in "".join(explain(then, worse))


def test_weights_that_were_lost_are_told_where_light_rows_have_the_opposite_labels():
    y, light = LABELS[Task.REGRESSION], np.arange(N) % 2 == 0
    shape, weights, noise = y / np.where(light, -1, 1), np.where(light, 0.2, 5.0), 0.1 * np.cos(np.arange(N))
    then, now = (side(Task.REGRESSION, sign * shape + noise, weights=weights) for sign in (1, -1))
    (told,) = explain(then, now)
    assert told.endswith(": the weights")


def test_where_only_some_predictions_moved_it_is_not_the_model():
    said = about(Task.REGRESSION)
    (told,) = explain(side(Task.REGRESSION, said), side(Task.REGRESSION, said + 3.0 * (SIGNS > 0)))
    assert told.startswith("only 50 % of the predictions moved, the others are bit-identical: not the model")
    facts = [{"trees": 50, "leaves": leaves} for leaves in (700, 702)]  # of which the model has others
    both = zip((said, said + 3.0 * (SIGNS > 0)), facts, strict=True)
    (told,) = explain(*(side(Task.REGRESSION, each, facts=fact) for each, fact in both))
    assert told == "only 50 % of the predictions moved, the others are bit-identical"


def test_a_class_that_bears_the_loss_does_so_by_its_weight():
    said, labels = about(Task.BINARY), LABELS[Task.BINARY]
    now = np.clip(said + np.where(labels == 1, -0.1, 0.1) * (1 + 0.01 * np.cos(np.arange(N))), 0.01, 0.99)
    plain = "".join(explain(side(Task.BINARY, said), side(Task.BINARY, now)))
    weights = np.where(labels == 1, 9.0, 0.1)
    (told,) = explain(*(side(Task.BINARY, one, weights=weights) for one in (said, now)))
    assert "of the loss is in the rows of class 1" in told
    assert "class" not in plain


def test_a_class_that_bears_the_loss_is_named_with_its_share_of_the_rows():
    said, mine = about(Task.MULTICLASS), LABELS[Task.MULTICLASS] == 2
    now = said.copy()
    now[mine] = (0.25, 0.25, 0.5)
    told, part = explain(side(Task.MULTICLASS, said), side(Task.MULTICLASS, now))
    assert told == "100 % of the loss is in the rows of class 2, which are 33 % of all"
    assert part.startswith("only 33 % of the predictions moved")


def test_of_a_metric_that_is_better_when_higher_the_loss_is_a_fall():
    said, mine = about(Task.MULTICLASS), LABELS[Task.MULTICLASS] == 2
    now = said.copy()
    now[mine & (np.arange(N) % 2 == 0)] = (0.8, 0.1, 0.1)
    sides = (side(Task.MULTICLASS, each, metric="accuracy") for each in (said, now))
    assert explain(*sides)[0] == "100 % of the loss is in the rows of class 2, which are 33 % of all"


def test_all_common_cells_are_looked_at():
    said = about(Task.REGRESSION)
    then, now = side(Task.REGRESSION, said), side(Task.REGRESSION, said + 0.3)
    fits = {**now.record.fits, "2": then.record.fits["2"]}  # the second cell did not move
    store = Store({**then.store, **now.store})
    half = RecordedSide(now.record.model_copy(update={"fits": fits}), store)
    assert explain(then, half) != explain(then, now)


def test_classes_that_one_side_does_not_have_are_not_compared():
    said = about(Task.MULTICLASS)
    wider = np.column_stack([0.9 * said, np.full(N, 0.1)])
    assert explain(side(Task.MULTICLASS, said), side(Task.MULTICLASS, wider)) == ()


@pytest.mark.parametrize("which", ["then", "now"])
def test_without_predictions_of_both_sides_nothing_is_said_of_them(which):
    said = about(Task.REGRESSION)
    sides = {"then": side(Task.REGRESSION, said), "now": side(Task.REGRESSION, said + 0.3)}
    sides[which] = side(Task.REGRESSION, None)
    assert explain(sides["then"], sides["now"]) == ()


def test_predictions_closer_to_their_mean_are_the_last_to_be_told():
    said = np.repeat(LABELS[Task.REGRESSION][: N // 2], 2)
    now = said.mean() + 0.9 * (said - said.mean())
    alike = said + 0.4 * SIGNS
    (told,) = explain(side(Task.REGRESSION, said, labels=alike), side(Task.REGRESSION, now, labels=alike))
    assert told == "predictions are closer to their mean (x 0.900)"
    trained = [{"training": value} for value in (0.30, 0.33)]
    sides = (
        side(Task.REGRESSION, each, labels=alike, facts=facts) for each, facts in zip((said, now), trained, strict=True)
    )
    (told,) = explain(*sides)
    assert told.startswith("on training rows RMSE 0.3000 → 0.3300 (+10.0 %): each tree learns less (learning rate, ")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"trees": 50}, {"trees": 35}, "trees 50 → 35"),
        ({"trees": 150, "rounds": 50}, {"trees": 105, "rounds": 35}, "trees 150 → 105 (rounds 50 → 35)"),
        ({"trees": 50, "leaves": 800}, {"trees": 50, "leaves": 784}, None),
        ({"trees": 50, "leaves": 800}, {"trees": 50, "leaves": 780}, "leaves 800 → 780 with as many trees"),
        (
            {"trees": 50, "leaves": 800},
            {"trees": 50, "leaves": 400},
            "leaves 800 → 400 with as many trees: a limit on their growth",
        ),
        ({"trees": 50}, {"trees": None}, None),
    ],
)
def test_what_was_built_is_told_before_what_was_predicted(before, after, told):
    said = about(Task.REGRESSION)
    then, now = side(Task.REGRESSION, said, facts=before), side(Task.REGRESSION, said + 0.3, facts=after)
    assert explain(then, now)[0] == (told or "all predictions moved alike, by +0.3 on average: the base score")
    assert len(explain(then, now)) == 1
