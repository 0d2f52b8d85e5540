"""A parity run from the request to its rows, through the real engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import fake_backends as fakes
from boosters_eval.parity.backend import BACKENDS
from boosters_eval.parity.data import GENERATORS
from boosters_eval.parity.method import METHODS, Convention
from boosters_eval.parity.rows import ParityRow, read_rows
from boosters_eval.parity.running import ParityRequest, run_parity
from boosters_eval.parity.verdicts import BindingStatus, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    GENERATORS.register("rows", fakes.Rows)
    for backend in fakes.ALL:
        BACKENDS.register(backend.name, backend)
    yield
    GENERATORS.unregister("rows")
    for backend in fakes.ALL:
        BACKENDS.unregister(backend.name)
    if "sum" in METHODS:
        METHODS.unregister("sum")


def run(home: Path, *backends: Any, **options: Any) -> dict[str, ParityRow]:
    changes = options.pop("changes", {})
    METHODS.register("sum", fakes.method(*backends, **changes), replace=True)
    request = ParityRequest(methods=("sum",), home=home, max_runs=options.pop("max_runs", 3), **options)
    return {row.backend: row for row in run_parity(request)}


def test_each_backend_is_judged_against_the_canonical_one_and_the_oracle(tmp_path: Path) -> None:
    convention = Convention(backend="scaled", sentence="It doubles.", low=0.99, high=1.01)
    backends = (fakes.Close, fakes.Wrong, fakes.Scaled, fakes.Absent)
    rows = run(tmp_path, *backends, changes={"conventions": (convention,)})
    assert {name: row.verdict for name, row in rows.items()} == {
        "sums": Verdict.BIT_EXACT,
        "close": Verdict.ROUNDING,
        "wrong": Verdict.DIVERGENT,
        "scaled": Verdict.CONVENTION,
        "absent": None,
    }
    assert rows["close"].binding_verdict is Verdict.ROUNDING
    assert rows["wrong"].binding_verdict is None
    assert rows["scaled"].convention == "It doubles."
    assert rows["absent"].status is BindingStatus.NOT_AVAILABLE
    assert "no_such_module_at_all is not installed" in rows["absent"].message
    assert rows["sums"].reported_ms is not None
    assert rows["sums"].median_ms == rows["sums"].reported_ms
    assert (rows["sums"].n_runs, rows["sums"].total_runs, rows["sums"].repeatable) == (2, 3, True)
    assert {"system", "processor", "BLAS", "Python"} <= set(json.loads(rows["sums"].host_json))


def test_a_bad_backend_costs_its_cell_and_no_other(tmp_path: Path) -> None:
    rows = run(tmp_path, *fakes.BAD, timeout_s=3.0)
    assert {name: row.status.value for name, row in rows.items()} == {
        "sums": "ok",
        "segfault": "crashed",
        "hang": "timeout",
        "garbage": "ok",
        "nan": "failed",
        "short": "failed",
        "column": "failed",
        "refuses": "refused",
        "half-way": "failed",
    }
    assert rows["garbage"].verdict is Verdict.BIT_EXACT
    assert rows["segfault"].signal == "SIGSEGV"
    assert "finite" in rows["nan"].message
    assert "must have shape (20,). Got (19,) instead." in rows["short"].message
    assert "must have shape (20,). Got (20, 1) instead." in rows["column"].message
    assert "It does not do sums." in rows["refuses"].message
    assert all(rows[name].verdict is None for name in ("segfault", "hang", "nan", "short", "refuses", "half-way"))


def test_a_stored_oracle_judges_without_being_run_and_a_missing_one_is_no_pass(tmp_path: Path) -> None:
    alone = run(tmp_path / "a", fakes.Close, backends=("close",))
    assert alone["close"].verdict is Verdict.ORACLE_MISSING
    run(tmp_path / "b", fakes.Close)
    later = run(tmp_path / "b", fakes.Close, backends=("close",))
    assert later["close"].verdict is Verdict.ROUNDING


def test_another_version_of_the_oracle_is_no_oracle(tmp_path: Path) -> None:
    oracle = fakes.Oracle(backend="sums", version="<1")
    assert run(tmp_path, changes={"oracle": oracle})["sums"].verdict is Verdict.ORACLE_MISSING


def test_resume_runs_only_what_is_missing_and_rows_survive_a_round_trip(tmp_path: Path) -> None:
    out = tmp_path / "matrix.csv"
    first = run(tmp_path, fakes.Close, out_csv=out)
    assert {row.backend: row for row in read_rows(out)} == first
    more = run(tmp_path, fakes.Close, fakes.Wrong, out_csv=out, resume=True)
    assert (more["sums"], more["close"]) == (first["sums"], first["close"])
    assert more["wrong"].run_id != first["sums"].run_id
    assert len(read_rows(out)) == 3
    again = run(tmp_path, fakes.Close, fakes.Wrong, out_csv=out, resume=True)
    assert again == more


def test_failed_cells_are_run_again_on_request(tmp_path: Path) -> None:
    out = tmp_path / "matrix.csv"
    run(tmp_path, fakes.Refuses, out_csv=out)
    kept = run(tmp_path, fakes.Refuses, out_csv=out, resume=True)
    again = run(tmp_path, fakes.Refuses, out_csv=out, rerun_failed=True)
    assert again["refuses"].run_id != kept["refuses"].run_id
    assert again["sums"] == kept["sums"]
