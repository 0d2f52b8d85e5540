"""Plans of any workload: their identity, their file, their order."""

from typing import ClassVar, Literal

import pytest

from boosters_eval import (
    WORKLOADS,
    Build,
    CellOutcome,
    ConfigError,
    FileFormatError,
    Plan,
    Repeat,
    Spec,
    Target,
    Workload,
)
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.plan import CellRef


class WordSpec(Spec):
    workload: Literal["word"] = "word"
    text: str = ""


class Word(Workload):
    name: ClassVar[str] = "word"
    spec_type: ClassVar[type[Spec]] = WordSpec
    outcome_type: ClassVar[type[CellOutcome]] = CellOutcome
    digests: ClassVar[dict[str, str]] = {}

    @classmethod
    def target(cls, name):
        return Target(name=name, build=Build(version="1", digest=cls.digests.get(name, "d")))

    @classmethod
    def run(cls, cell, loaded, inputs, phase):
        return CellOutcome.of(cell)


class Letter(Word):
    name: ClassVar[str] = "letter"


@pytest.fixture(autouse=True)
def workloads():
    for workload in (Word, Letter):
        WORKLOADS.register(workload.name, workload)
    yield
    for workload in (Word, Letter):
        WORKLOADS.unregister(workload.name)
    Word.digests.clear()


SPECS = [WordSpec(name="a", text="x"), WordSpec(name="b", n_threads=2, alone=True)]
REPEATS = [Repeat(1), Repeat(2, 0), Repeat(2, 1)]


def grid(specs=SPECS, targets=("one", "two"), repeats=REPEATS, name="words"):
    return Plan.grid(name, specs, targets, repeats)


def test_run_id_is_that_of_the_content_whatever_its_order_and_name():
    assert grid().run_id == grid(SPECS[::-1], ("two", "one"), REPEATS[::-1], "other").run_id


@pytest.mark.parametrize(
    "other",
    [
        lambda: grid(repeats=REPEATS[:2]),
        lambda: grid(targets=("one",)),
        lambda: grid([SPECS[0].replace(text="y"), SPECS[1]]),
        lambda: grid([SPECS[0].replace(n_threads=3), SPECS[1]]),
    ],
)
def test_what_an_outcome_depends_on_changes_the_run_id(other):
    assert other().run_id != grid().run_id


def test_rebuilt_target_changes_the_run_id():
    before = grid().run_id
    Word.digests["two"] = "rebuilt"
    assert grid().run_id != before


def test_plan_survives_its_file():
    plan = grid()
    again = Plan.parse(plan.model_dump_json(), "plan.json")
    assert again == plan
    assert again.run_id == plan.run_id
    assert again.cells == plan.cells
    assert type(again.specs[0]) is WordSpec


def test_two_workloads_share_a_plan_and_even_names_of_targets():
    mixed = [SPECS[0], WordSpec.model_construct(workload="letter", name="c", text="", n_threads=1, alone=False)]
    plan = Plan.of("mixed", mixed, [CellRef(0, "one", 1, None), CellRef(1, "one", 1, None)])
    assert plan.builds.keys() == {"letter", "word"}
    assert [cell.lane.workload for cell in plan.cells] == ["word", "letter"]


def test_spec_of_an_unknown_workload_is_one_sentence():
    text = grid().model_dump_json().replace('"workload":"word"', '"workload":"wort"')
    with pytest.raises(FileFormatError, match=r"plan.json is not a plan: Unknown workload 'wort'. Did you mean 'word'"):
        Plan.parse(text, "plan.json")


@pytest.mark.parametrize("name", ["", "two words", 'quo"te', "line\nbreak", "größe"])
def test_name_that_a_journal_could_not_hold_is_refused(name):
    with pytest.raises(ConfigError, match="'workload' parameter of Spec"):
        Spec(workload=name, name="a")


def test_cells_run_repeat_by_repeat_with_targets_shuffled_in_a_fixed_order():
    plan = grid(targets=tuple("abcdefgh"))
    order = plan.in_running_order(plan.cells)
    assert order == plan.in_running_order(plan.cells)
    assert set(order) == set(plan.cells)
    assert [cell.repeat for cell in order] == sorted((c.repeat for c in order), key=REPEATS.index)
    blocks = {tuple(c.target.name for c in order if (c.repeat, c.spec.name) == (r, s)) for r in REPEATS for s in "ab"}
    assert len(blocks) > 1
    assert {frozenset(block) for block in blocks} == {frozenset("abcdefgh")}


@pytest.mark.parametrize(
    "make",
    [
        lambda: grid([SPECS[0], SPECS[0].replace(text="z")]),
        lambda: grid(targets=("one", "one")),
        lambda: grid(repeats=[Repeat(1), Repeat(1)]),
        lambda: grid([WordSpec(name="a|b"), WordSpec(name="a")], targets=("c", "b|c")),
    ],
)
def test_two_cells_of_one_key_are_refused(make):
    with pytest.raises(ConfigError, match="cells of a plan must have different keys"):
        make()


@pytest.mark.parametrize("spec", [-1, 2, 99])
def test_cell_without_a_spec_is_refused(spec):
    text = grid().model_dump_json().replace('"refs":[[0,', f'"refs":[[{spec},', 1)
    with pytest.raises(FileFormatError, match="refers to a spec that is not there"):
        Plan.parse(text, "plan.json")


class Syllable(Word):
    name: ClassVar[str] = "syllable"

    @classmethod
    def target(cls, name):
        return Target(name=name, build=Build(version="2", digest="e"))


class SyllableSpec(Spec):
    workload: Literal["syllable"] = "syllable"


def test_targets_of_one_name_in_two_workloads_are_both_recorded():
    WORKLOADS.register("syllable", Syllable)
    try:
        plan = Plan.of(
            "both", [SPECS[0], SyllableSpec(name="s")], [CellRef(0, "one", 1, None), CellRef(1, "one", 1, None)]
        )
        versions = {name: build["version"] for name, build in RunFacts.collect(plan).targets.items()}
    finally:
        WORKLOADS.unregister("syllable")
    assert sorted(versions.values()) == ["1", "2"]
    assert "one" in versions
