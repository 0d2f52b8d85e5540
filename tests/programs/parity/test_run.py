"""A parity run from the request to its rows, through the real engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import fake_backends as fakes
from boosters_eval import Observer, list_oracles, refresh_oracles, run_parity, verify_oracles
from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.engine.execute import EXECUTORS, Executor
from boosters_eval.engine.runs import find_run
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.findings import decide
from boosters_eval.programs.parity.method import GENERATORS, METHODS, Convention
from boosters_eval.programs.parity.rows import ParityRow, read_rows, write_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict
from stamping import FAST, SLOW, Stamping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Rows = dict[str, ParityRow]
    Run = Callable[..., Rows]

DOUBLES = tuple(
    Convention(backend=name, sentence="It doubles.", changes={"factor": 2}) for name in ("scaled", "own-scaled")
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    """One pool for all tests, whose lanes stay warm; what is registered is gone afterwards."""
    GENERATORS.register("rows", fakes.Rows)
    for backend in fakes.ALL:
        BACKENDS.register(backend.name, backend)
    with EXECUTORS["local"](1) as executor:
        yield executor
    GENERATORS.unregister("rows")
    for backend in fakes.ALL:
        BACKENDS.unregister(backend.name)
    METHODS.unregister("sum")


def carry_out(pool: Executor, home: Path, *backends: Any, **options: Any) -> Rows:
    METHODS.register("sum", fakes.method(*backends, **options.pop("changes", {})), replace=True)
    settings = {"max_runs": 3, "rounds": 1, **options}
    found = run_parity("sum", home=home, executor=pool, **settings)
    return {row.backend: row for row in found.rows}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def everything(pool: Executor, home: Path) -> Rows:
    """One run of every backend, good and bad."""
    return carry_out(
        pool, home, *fakes.GOOD, *fakes.BAD, changes={"conventions": DOUBLES}, timeout=2.0, out_csv=home / "all.csv"
    )


@pytest.fixture
def run(pool: Executor, tmp_path: Path) -> Run:
    return lambda *backends, **options: carry_out(pool, options.pop("home", tmp_path), *backends, **options)


def test_each_row_has_the_host_of_the_machine_that_its_cell_names(pool: Executor, tmp_path: Path) -> None:
    with Stamping(place=lambda cell: SLOW if cell.target.name == "close" else FAST) as nodes:
        rows = carry_out(nodes, tmp_path, *fakes.GOOD)
    hosts = {
        name: json.loads(row.host_json)["processor"] for name, row in rows.items() if row.status is BindingStatus.OK
    }
    assert hosts == {name: "Slow CPU" if name == "close" else "Fast CPU" for name in hosts}
    assert set(hosts.values()) == {"Slow CPU", "Fast CPU"}


def test_each_backend_is_judged_against_the_canonical_one_and_the_oracle(everything: Rows) -> None:
    good = ("sums", *(backend.name for backend in fakes.GOOD))
    assert {name: (everything[name].verdict, everything[name].binding_verdict) for name in good} == {
        "sums": (ParityVerdict.BIT_EXACT, ParityVerdict.BIT_EXACT),
        "close": (ParityVerdict.ROUNDING, ParityVerdict.ROUNDING),
        "wrong": (ParityVerdict.DIVERGENT, None),
        "scaled": (ParityVerdict.CONVENTION, None),
        "own-scaled": (ParityVerdict.CONVENTION, ParityVerdict.CONVENTION),
        "absent": (None, None),
    }
    assert everything["scaled"].convention == "It doubles."
    assert everything["absent"].status is BindingStatus.NOT_AVAILABLE
    assert "no_such_module_at_all is not installed" in everything["absent"].message


def test_a_row_tells_times_threads_and_versions(everything: Rows) -> None:
    row = everything["sums"]
    assert row.reported_ms is not None
    assert row.median_ms == row.reported_ms
    assert (row.n_runs, row.total_runs, row.stop_reason, row.repeatable) == (2, 3, "max_runs", True)
    assert row.timing_schema == "adaptive-v1"
    assert len(row.samples_ns) == 3
    assert row.threads == 1
    assert row.threads_observed in (1, None), "a cell of a few milliseconds may end before it is looked at twice"
    assert any(row.threads_observed == 1 for row in everything.values())
    assert json.loads(row.versions_json) == fakes.Sums.versions()
    assert list(json.loads(row.versions_json)) == ["numpy", "python", "BLAS"]
    assert {"system", "processor", "BLAS", "Python"} <= set(json.loads(row.host_json))
    assert row.load_ms is not None
    assert row.load_ms > 0
    counted = (row.fit_ms or 0) + (row.predict_ms or 0)
    assert row.reported_ms < counted + row.load_ms, "reading the data is part of no time"


def test_a_bad_backend_costs_its_cell_and_no_other(everything: Rows) -> None:
    bad = [backend.name for backend in fakes.BAD]
    assert {name: everything[name].status.value for name in bad} == {
        "segfault": "crashed",
        "hang": "timeout",
        "garbage": "ok",
        "nan": "failed",
        "short": "failed",
        "column": "failed",
        "refuses": "refused",
        "connection": "failed",
        "half-way": "failed",
        "scalar": "failed",
        "short-later": "failed",
        "unknowing": "failed",
    }
    assert everything["garbage"].verdict is ParityVerdict.BIT_EXACT
    assert everything["segfault"].signal == "SIGSEGV"
    assert everything["segfault"].message.endswith("It printed: free(): invalid pointer")
    assert "finite" in everything["nan"].message
    assert "must have shape (20,). Got (19,) instead." in everything["short"].message
    assert "must have shape (20,). Got (20, 1) instead." in everything["column"].message
    assert "must have shape (20,) in each run. Got (19,) instead." in everything["short-later"].message
    assert "its version: OSError: libsum.so: cannot open." in everything["unknowing"].message
    assert "It does not do sums." in everything["refuses"].message
    assert all(everything[name].verdict is None for name in bad if name != "garbage")


def test_the_file_holds_the_rows_of_the_run(everything: Rows, home: Path) -> None:
    assert {row.backend: row for row in read_rows(home / "all.csv")} == everything


def test_the_gate_fails_for_external_backends_only_on_request(everything: Rows) -> None:
    assert decide(everything.values()).exit_code == 0
    strict = decide(everything.values(), strict_external=True)
    assert strict.exit_code == 1
    assert [text.partition(":")[0] for text in strict.divergent] == ["sum 20x3 wrong, 1 thread"]


def test_a_stored_oracle_judges_without_being_run(everything: Rows, home: Path, run: Run) -> None:
    later = run(fakes.Close, backends=("close",), home=home)
    assert list(later) == ["close"]
    assert later["close"].verdict is everything["close"].verdict
    declared = fakes.Oracle(backend="sums", version="<1")
    other = run(fakes.Close, backends=("close",), home=home, changes={"oracle": declared})
    assert other["close"].verdict is ParityVerdict.ORACLE_MISSING, "what is stored is not the version that is declared"
    assert "sums <1" in other["close"].message


def test_a_reference_is_what_was_predicted_with_one_thread(run: Run) -> None:
    two = run(fakes.Close, threads=(2,))
    assert {row.verdict for row in two.values()} == {ParityVerdict.ORACLE_MISSING}
    assert {row.binding_verdict for row in two.values()} == {ParityVerdict.ORACLE_MISSING}
    run()
    assert run(fakes.Close, threads=(2,))["close"].verdict is ParityVerdict.ROUNDING


def test_a_damaged_reference_costs_the_cells_that_need_it_and_running_the_oracle_mends_it(
    run: Run, tmp_path: Path
) -> None:
    assert run(fakes.Close)["close"].verdict is ParityVerdict.ROUNDING
    for path in (tmp_path / "parity" / "oracles").glob("arrays/*/*.npy"):
        path.write_bytes(b"damaged")
    alone = run(fakes.Close, backends=("close",))["close"]
    assert (alone.status, alone.verdict) == (BindingStatus.OK, ParityVerdict.ORACLE_MISSING)
    assert "was changed after it was written" in alone.message
    assert run(fakes.Close)["close"].verdict is ParityVerdict.ROUNDING


def test_an_array_that_is_gone_costs_its_cell(run: Run, tmp_path: Path) -> None:
    run(fakes.Close)
    for path in (tmp_path / "parity" / "arrays").glob("*/*.npy"):
        path.unlink()
    assert {row.status for row in run(fakes.Close, resume=True).values()} == {BindingStatus.FAILED}


def test_a_row_without_an_oracle_is_no_pass_and_is_judged_when_the_oracle_has_come(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "matrix.csv"
    alone = run(fakes.Close, backends=("close",), out_csv=out)["close"]
    assert (alone.verdict, alone.binding_verdict) == (ParityVerdict.ORACLE_MISSING, ParityVerdict.ORACLE_MISSING)
    assert decide([alone]).exit_code == 2
    both = run(fakes.Close, out_csv=out, resume=True)
    assert both["close"].verdict is ParityVerdict.ROUNDING
    assert both["close"].run_id == alone.run_id, "it was not run again"
    strict = run(fakes.Close, out_csv=out, resume=True, changes={"tolerance": 0.0})
    assert strict["close"].verdict is ParityVerdict.DIVERGENT
    assert strict["close"].run_id == alone.run_id
    assert {row.backend: row for row in read_rows(out)} == strict


def test_resume_runs_what_is_missing_deferred_or_stale(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "matrix.csv"
    first = run(fakes.Close, fakes.Refuses, out_csv=out, max_cells=1)
    assert [row.status.value for row in first.values()] == ["ok", "deferred", "deferred"]
    assert decide(first.values()).exit_code == 2, "what was put off is no pass"
    more = run(fakes.Close, fakes.Refuses, out_csv=out, resume=True)
    assert more["sums"] == first["sums"]
    assert [row.status.value for row in more.values()] == ["ok", "ok", "refused"]
    assert run(fakes.Close, fakes.Refuses, out_csv=out, resume=True) == more
    again = run(fakes.Close, fakes.Refuses, out_csv=out, rerun_failed=True)
    assert again["refuses"].run_id != more["refuses"].run_id
    assert (again["sums"], again["close"]) == (more["sums"], more["close"])
    write_rows(out, [row.model_copy(update={"versions_json": '{"numpy": "1.0"}'}) for row in again.values()])
    new = run(fakes.Close, fakes.Refuses, out_csv=out, resume=True)
    assert json.loads(new["close"].versions_json) == fakes.Close.versions(), "another version is another measurement"
    longer = run(fakes.Close, fakes.Refuses, out_csv=out, resume=True, max_runs=4)
    assert longer["close"].total_runs == 4


class Interrupted(Executor):
    """The pool, until the user presses Ctrl-C."""

    def __init__(self, pool: Executor, after: int) -> None:
        super().__init__(1)
        self.pool, self.after = pool, after

    def run(self, works: Any, started: Any) -> Any:
        for number, outcome in enumerate(self.pool.run(works, started)):
            if number == self.after:
                raise KeyboardInterrupt
            yield outcome

    def close(self) -> None:
        pass


def test_after_an_interruption_the_file_has_what_finished_and_the_rest_as_not_run(
    run: Run, pool: Executor, tmp_path: Path
) -> None:
    out = tmp_path / "matrix.csv"
    before = run(fakes.Close, fakes.Wrong, out_csv=out)
    with pytest.raises(KeyboardInterrupt):
        carry_out(Interrupted(pool, after=1), tmp_path, fakes.Close, fakes.Wrong, fakes.Scaled, out_csv=out)
    told = {row.backend: row for row in read_rows(out)}
    first = before["sums"].run_id
    new = {name for name, row in told.items() if row.run_id != first and row.status is BindingStatus.OK}
    not_run = {name for name, row in told.items() if row.status is BindingStatus.NOT_RUN}
    assert len(new) == 1, "one cell finished before the interruption"
    assert new | not_run >= {"scaled"}
    after = run(fakes.Close, fakes.Wrong, fakes.Scaled, out_csv=out, resume=True)
    assert {row.status.value for row in after.values()} == {"ok"}
    assert len({row.run_id for row in after.values()}) == 1, "the interrupted run was continued"
    assert after[new.pop()].samples_ns in {row.samples_ns for row in told.values()}, "and nothing was repeated"


def test_an_interrupted_run_may_be_finished_a_few_cells_at_a_time(run: Run, pool: Executor, tmp_path: Path) -> None:
    out = tmp_path / "matrix.csv"
    backends = (fakes.Close, fakes.Wrong, fakes.Scaled)
    with pytest.raises(KeyboardInterrupt):
        carry_out(Interrupted(pool, after=1), tmp_path, *backends)  # without a file: as if it had been killed
    for done in (2, 3, 4):
        rows = run(*backends, out_csv=out, resume=True, max_cells=1)
        assert [row.status.value for row in rows.values()].count("ok") == done
    assert run(*backends, out_csv=out, resume=True) == rows, "and nothing is left to run"


def test_a_file_that_cannot_be_added_to_is_refused_before_anything_is_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "half.csv").write_text("method,backend\nsum")
    with pytest.raises(FileFormatError, match="is not a file of parity results"):
        run(out_csv=tmp_path / "half.csv")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"resume": True, "rerun_failed": True}, "Use either 'resume' or 'rerun_failed', not both."),
        ({"backends": "clos"}, "Unknown backend 'clos'. Did you mean 'close'"),
        ({"sizes": ["10by3"]}, "The 'sizes' parameter must be rows x columns, such as 1000x50. Got '10by3' instead."),
        ({"sizes": (20, 3)}, "The 'sizes' parameter must be rows x columns, such as 1000x50. Got 20 instead."),
        ({"sizes": fakes.Size(0, 3)}, "The 'sizes' parameter must be rows x columns, such as 1000x50. Got 0 instead."),
        ({"threads": [1, 0]}, "The 'threads' parameter must be a count of at least 1. Got 0 instead."),
        ({"timeout": 0}, "The 'timeout' parameter must be seconds above 0. Got 0 instead."),
        ({"max_cells": True}, "The 'max_cells' parameter must be a count of at least 1. Got True instead."),
        ({"methods": 3}, "The 'methods' parameter must be names of methods. Got 3 instead."),
        ({"observer": "lnes"}, "Unknown observer 'lnes'. Did you mean 'lines'"),
        ({"budgt": 3}, "run_parity() has no parameter 'budgt'. Did you mean 'budget'?"),
    ],
)
def test_python_is_told_of_parameters(options: dict[str, Any], told: str, pool: Executor, tmp_path: Path) -> None:
    METHODS.register("sum", fakes.method(fakes.Close), replace=True)
    with pytest.raises(ConfigError) as caught:
        run_parity(**{"methods": "sum", "home": tmp_path, "executor": pool, **options})
    assert str(caught.value).startswith(told)
    assert not (tmp_path / "runs").exists()


class Fussy(fakes.Rows):
    name = "fussy"

    @classmethod
    def generate(cls, method: Any, size: Any, seed: int, shared: Any) -> Any:
        raise ValueError("too narrow.")


def test_data_that_cannot_be_made_are_told_with_the_parameter(run: Run) -> None:
    GENERATORS.register("fussy", Fussy)
    try:
        with pytest.raises(
            ConfigError, match=r"^The method 'sum' has no data of size 4x1 \('sizes'\): ValueError: too n"
        ):
            run(changes={"data": "fussy"}, sizes="4x1")
    finally:
        GENERATORS.unregister("fussy")


def test_what_was_put_off_is_told_in_terms_of_python(run: Run) -> None:
    assert run(fakes.Close, max_cells=1)["close"].message == "put off by max_cells=1: resume=True runs it"


def test_cells_run_one_at_a_time_and_are_seen_by_observers(tmp_path: Path, pool: Executor) -> None:
    METHODS.register("sum", fakes.method(fakes.Close), replace=True)
    seen: list[str] = []

    class Seeing(Observer):
        def outcome(self, event: Any) -> None:
            seen.append(event.cell.target.name)

    given = {"home": tmp_path, "max_runs": 1, "observer": Seeing(), "name": "seen", "jobs": 4}
    assert run_parity("sum", **given).exit_code == 0
    assert sorted(seen) == ["close", "sums"]
    facts = find_run("seen", tmp_path).facts(1)
    assert (facts.kind, facts.jobs, facts.display_name) == ("parity", 1, "seen")


def test_references_are_refreshed_as_one_run(pool: Executor, tmp_path: Path) -> None:
    for name in ("sum", "sum2"):
        METHODS.register(name, fakes.method(fakes.Close, name=name, canonical="close"), replace=True)
    METHODS.register("sum3", fakes.method(name="sum3", oracle=None), replace=True)
    try:
        found = refresh_oracles(["sum", "sum2", "sum3"], home=tmp_path, executor=pool, name="fresh")
        assert refresh_oracles("sum3", home=tmp_path, executor=pool).exit_code == 2, "it declares no oracle"
    finally:
        METHODS.unregister("sum2")
        METHODS.unregister("sum3")
    assert (found.exit_code, len(found.rows), found.stored) == (0, 4, found.rows)
    assert len({row.run_id for row in found.rows}) == 1
    stored = list_oracles(home=tmp_path).references
    assert sorted((item.method, item.role) for item in stored) == [
        (name, role) for name in ("sum", "sum2") for role in ("canonical", "oracle", "transformed")
    ]
    assert verify_oracles(home=tmp_path).exit_code == 0
    for path in (tmp_path / "parity" / "oracles").glob("arrays/*/*.npy"):
        path.write_bytes(b"damaged")
    assert verify_oracles(home=tmp_path).exit_code == 2
