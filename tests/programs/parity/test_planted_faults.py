"""Faults planted in three languages, through the real engine: none passes, and each gets its own diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import faulty_backends as faulty
from boosters_eval import run_parity
from boosters_eval.engine.execute import EXECUTORS
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.findings import decide
from boosters_eval.programs.parity.method import GENERATORS, METHODS
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.parity.rows import ParityRow

    Rows = dict[str, ParityRow]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    GENERATORS.register("points", faulty.Points)
    METHODS.register("weights", faulty.METHOD)
    for backend in faulty.ALL:
        BACKENDS.register(backend.name, backend)
    with EXECUTORS["local"](1) as executor:
        found = run_parity("weights", home=tmp_path_factory.mktemp("home"), max_runs=2, executor=executor)
    yield {row.backend: row for row in found.rows}
    GENERATORS.unregister("points")
    METHODS.unregister("weights")
    for backend in faulty.ALL:
        BACKENDS.unregister(backend.name)


def available(row: ParityRow) -> ParityRow:
    if row.status is BindingStatus.NOT_AVAILABLE:
        pytest.skip(row.message)
    return row


def test_there_are_many_faults_each_with_its_own_name() -> None:
    names = [name.partition(".")[2] or name for name in faulty.FAULTS]
    assert len(set(names)) == len(names) >= 20


@pytest.mark.parametrize("name", faulty.FAULTS)
def test_a_planted_fault_fails_the_gate_and_is_named(rows: Rows, name: str) -> None:
    row = available(rows[name])
    known = name == "c.leave_out=1"
    assert row.verdict is (ParityVerdict.KNOWN_DEFECT if known else ParityVerdict.DIVERGENT)
    assert row.cause == (name.partition(".")[2] or name)
    assert row.diagnosis
    assert decide([row]).exit_code == 1
    assert row.diagnosis in decide([row]).divergent[0] or known


@pytest.mark.parametrize("name", faulty.GOOD)
def test_a_harmless_difference_passes_with_its_name(rows: Rows, name: str) -> None:
    row = available(rows[name])
    assert row.verdict in (ParityVerdict.ROUNDING, ParityVerdict.BIT_EXACT)
    if name in faulty.HARMLESS:
        expected = faulty.HARMLESS[name][0]
        assert row.cause in (expected, "last_bits" if expected == "summation" else expected), row.diagnosis
    assert decide([row]).exit_code == 0


def test_a_declared_order_of_columns_is_a_convention(rows: Rows) -> None:
    row = rows["documented"]
    assert (row.verdict, row.binding_verdict) == (ParityVerdict.CONVENTION, ParityVerdict.CONVENTION)
    assert row.diagnosis == 'agrees with columns="reversed"'
    assert decide([row]).exit_code == 0


def test_a_convention_hides_nothing_else(rows: Rows) -> None:
    assert rows["hiding"].verdict is ParityVerdict.DIVERGENT
    assert decide([rows["hiding"]]).exit_code == 1


def test_a_known_defect_of_others_is_seen_and_one_of_ones_own_fails(rows: Rows) -> None:
    row = rows["known"]
    assert row.verdict is ParityVerdict.KNOWN_DEFECT
    assert "https://example.org/7" in row.convention
    found = decide([rows["right"], row], strict_external=True)
    assert found.exit_code == 0
    assert found.known_defects[0].startswith("weights 60x6 known, 1 thread: It leaves out the last column.")
    assert decide([row], own=("known",)).exit_code == 1


def test_an_answer_that_does_not_depend_on_the_input_is_stale(rows: Rows) -> None:
    for name in ("stale", "lagging"):
        row = rows[name]
        assert (row.status, row.verdict, row.cause) == (BindingStatus.STALE, None, "stale")
        assert decide([row]).exit_code == 1
    assert rows["stale"].message == "3 unlike data sets got 1 unlike predictions."


def test_two_further_data_sets_are_compared_although_there_are_two_runs(rows: Rows) -> None:
    assert (rows["right"].total_runs, rows["right"].n_compared) == (2, 3)
    assert len(set(rows["right"].predictions)) == 3
