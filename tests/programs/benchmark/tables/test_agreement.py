"""Whatever the results: the answer, the highlights, the pairs, `best`, the standings and the headline say the same."""

import random
import re

import pytest

import factories
from boosters_eval.programs.benchmark.comparisons import NO_BETTER
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.headline import find_standings
from boosters_eval.reports.html.charts import contrast
from boosters_eval.runners.result import SplitFacts

NAMES = r"((?:lib\w(?:, | and )?)+)"
SPLITS = {
    "time": {"split": SplitFacts(kind="time", column="t")},
    "group": {"split": SplitFacts(kind="group", column="g", n_train_groups=32, n_valid_groups=8)},
    "official": {"split_digest": "official"},
}


def random_run(rng):
    """Any mix of libraries, splits, gaps, ties, failures and trivial rules."""
    kind, n = rng.choice(["seeds", "seeds", "folds", *SPLITS]), rng.choice([1, 2, 3, 6, 10])
    gap, noise = rng.choice([0, 0.001, 0.01, 0.1]), rng.choice([0, 0.001, 0.02])
    metric, rule = rng.choice(["rmse", "r2"]), rng.choice([None, 0.0, 0.5, 2.0])
    changes = {**SPLITS.get(kind, {}), **({} if rule is None else {"trivial": {"mean": {metric: rule}}})}
    level = [rng.gauss(0.5, 0.02) for _ in range(n)]
    results, errors = [], []
    for position in range(rng.randint(2, 5)):
        failing = rng.choice([0, 0, 0.3, 0.8])
        for split in range(n):
            repeat = {"seed": 0, "fold": split} if kind in ("folds", "time") else {"seed": split}
            value = level[split] + gap * position * (1 if rng.random() < 0.9 else -2) + rng.gauss(0, noise)
            if rng.random() < failing:
                errors.append(factories.error(library=f"lib{position}", **repeat))
            else:
                results.append(
                    factories.result(library=f"lib{position}", value=value, metric=metric, **repeat, **changes)
                )
    return ResultCollection(results, errors), metric


def listed(pattern, text):
    return {name for found in re.findall(pattern + NAMES, text) for name in re.findall(r"lib\w", found)}


def check_agreement(run, metric, test):
    report = build_tables(run, test=test)
    (table,) = report.tables
    (best,) = run.best(metric, test=test).to_dict("records")
    answer, leader = table.answer[0].removeprefix("Which: "), best["leader"]
    pairs = [contrast(p, leader, as_ratio=False) for p in table.pairs if p.metric == metric and leader in (p.a, p.b)]
    verdicts = {pair.name: pair.verdict for pair in pairs}  # of the others against the leader
    bold = [row.label for row in table.rows if row.cells[0].best]
    assert re.findall(r"^(lib\w) is be(?:st|tter)", answer) == bold
    named = re.findall(r"(lib\w) (?:is best|is better than|has the best|comes nearest)", answer)[:1]
    equal = listed("^(?:any|either) of these \\w+: ", answer)
    assert named == [leader] or "no two have a " in answer or leader in equal
    assert all(verdicts[name] == "equivalent" for name in equal - {leader})
    assert bold == ([best["best"]] if best["best"].startswith("lib") else [])
    lost = "not better than" in answer.split(". ")[0] or answer.startswith("none. Nothing is better")
    assert (best["best"] == NO_BETTER) == lost
    assert all(verdicts[name] == "inconclusive" for name in listed("has the best mean [^,]+, but ", answer))
    assert all(verdicts[name] == "inconclusive" for name in listed("Cannot say about ", answer))
    assert all(verdicts[name] == "worse" for name in listed("Worse than lib\\w: ", answer))
    assert all(verdicts[name] == "worse" for name in verdicts if bold)
    found = find_standings(table)
    assert [name for name, standing in found.items() if standing == "best"] == bold
    assert {name for name, standing in found.items() if standing == "worse"} == {
        name for name, verdict in verdicts.items() if verdict == "worse"
    }
    as_good = {name for name, standing in found.items() if standing == "as good as the best"}
    assert all(verdicts[name] == "equivalent" for name in as_good - {leader})
    open_ = {name for name, standing in found.items() if standing == "cannot say"}
    assert all(verdicts[name] == "inconclusive" for name in open_ - {leader})
    assert (found.get(leader) == "no better than a trivial rule") == lost


@pytest.mark.parametrize("test", ["corrected", "welch", "wilcoxon"])
def test_nothing_that_a_report_says_contradicts_its_verdicts(test):
    rng = random.Random(16)
    for _ in range(50):
        run, metric = random_run(rng)
        if len({result.library for result in run.results}) > 1:
            check_agreement(run, metric, test)


def partly_failed():
    """b is better than a on ten splits; a has the better mean on the two that c did not fail on."""
    rng, results, errors = random.Random(1), [], []
    for seed in range(10):
        value = rng.gauss(0.5, 0.01)
        results += [factories.result(library="a", seed=seed, value=value * (1.2 if seed > 1 else 0.99))]
        results += [factories.result(library="b", seed=seed, value=value)]
        if seed < 2:
            results.append(factories.result(library="c", seed=seed, value=1.3 * value))
        else:
            errors.append(factories.error(library="c", seed=seed))
    return ResultCollection(results, errors)


def test_a_library_that_lost_to_another_does_not_lead_because_a_third_one_failed():
    run = partly_failed()
    (table,) = build_tables(run).tables
    assert "RMSE: b is better than a, c; a is better than c." in table.notes
    assert table.answer[0].startswith(
        "Which: b is best. Its RMSE is 13.6 % lower than that of a, the next. 8 of 10 cells of c failed"
    )
    assert "from 2 to 10 splits" in table.answer[1]
    assert find_standings(table) == {"a": "worse", "b": "best", "c": "worse"}
    assert run.best("rmse")["best"].tolist() == ["b"]


def test_by_the_rfcs_rule_a_pair_whose_intervals_overlap_is_not_decided():
    scores = {"a": (0.50, 0.52, 0.51, 0.53, 0.49, 0.51), "b": (0.53, 0.54, 0.52, 0.55, 0.52, 0.54)}
    run = ResultCollection(
        [factories.result(library=name, seed=i, value=v) for name, row in scores.items() for i, v in enumerate(row)]
    )
    (table,) = build_tables(run, test="welch").tables
    assert table.pairs[0].p < 0.05
    assert table.pairs[0].verdict == "inconclusive"
    assert "the intervals of the two means overlap" in table.pairs[0].text
    assert table.answer[0].startswith("Which: cannot say")
