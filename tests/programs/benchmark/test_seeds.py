import pytest

import factories
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.seeds import grow, parse_budget
from boosters_eval.runners.config import derive_seeds
from boosters_eval.stats.sequential import SequentialRule


def results_of(seeds, gap):
    """Two libraries whose scores differ by `gap` and a little noise that depends on the seed alone."""
    out = []
    for index, seed in enumerate(derive_seeds(seeds)):
        for library, shift in (("a", 0.0), ("b", gap)):
            noise = ((index * 7 + len(library) * 3 + (library == "b") * index * 5) % 11 - 5) / 50
            out.append(factories.result("d/gbdt", library, seed, 1.0 + shift + noise))
    return ResultCollection(out)


class Runs:
    def __init__(self, gap, seconds=1.0):
        self.gap, self.seconds, self.asked, self.now = gap, seconds, [], 0.0

    def __call__(self, seeds):
        self.now = seeds * self.seconds
        self.asked.append(seeds)
        return results_of(seeds, self.gap)

    def clock(self):
        return self.now


def test_clear_difference_stops_at_the_first_look():
    runs, said = Runs(gap=5.0), []
    found = grow(runs, SequentialRule(max_seeds=40), say=said.append)
    assert runs.asked == [5]
    assert len(found.results) == 10
    assert said == ["5 seeds: every pair has a verdict"]


def test_variants_of_one_library_are_pairs_too():
    def run(seeds):
        rows = [
            one.model_copy(update={"library": "lib", "variant": one.library, "config_name": f"d/{one.library}"})
            for one in results_of(seeds, 5.0).results
        ]
        return ResultCollection(rows)

    said = []
    grow(run, SequentialRule(max_seeds=40), say=said.append)
    assert said == ["5 seeds: every pair has a verdict"]


def test_a_pair_that_cannot_be_compared_does_not_prolong_the_run():
    def run(seeds):
        rows = results_of(seeds, 5.0).results
        return ResultCollection([*rows, rows[0]])

    said = []
    grow(run, SequentialRule(max_seeds=40), say=said.append)
    assert said == ["5 seeds: every pair has a verdict; 1 cannot be compared"]


def test_unclear_difference_uses_all_looks():
    rule = SequentialRule(max_seeds=20)
    runs = Runs(gap=0.03)
    said = []
    grow(runs, rule, say=said.append)
    assert tuple(runs.asked) == rule.schedule
    assert "20 seeds: no more are allowed" in said[-1]
    assert rule.level < 0.05


def test_budget_takes_only_the_seeds_it_is_enough_for():
    runs = Runs(gap=0.03)
    said = []
    grow(runs, SequentialRule(max_seeds=40), budget_s=8.0, clock=runs.clock, say=said.append)
    assert runs.asked == [5, 8]
    assert said == [
        "5 seeds: 1 of 1 pair is inconclusive; continuing to 8 seeds, for which the time budget is enough",
        "8 seeds: the time budget is used up",
    ]


def test_pace_of_a_budget_begins_with_the_first_cell():
    runs = Runs(gap=0.03)
    asked = []

    def run(seeds):
        found = runs(seeds)
        runs.now += 20.0  # of imports, once
        asked.append(seeds)
        return found

    grow(run, SequentialRule(max_seeds=40), budget_s=30.0, clock=runs.clock, began=lambda: 20.0)
    assert asked == [5, 10]


def test_budget_that_is_used_at_the_first_look_stops_there():
    runs = Runs(gap=0.03)
    said = []
    grow(runs, SequentialRule(max_seeds=40), budget_s=5.0, clock=runs.clock, say=said.append)
    assert runs.asked == [5]
    assert said == ["5 seeds: the time budget is used up"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (7, 7), (None, None)]
)
def test_budget_is_read_with_its_unit(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["soon", "0", "-3m", "5 days", ""])
def test_invalid_budget_is_refused(text):
    with pytest.raises(ConfigError, match="10m"):
        parse_budget(text)
