"""The shipped families on the real backends: what the tool must detect by itself. Run by `make test-parity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from boosters_eval import run_parity
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.findings import decide
from boosters_eval.programs.parity.method import METHODS, Size
from boosters_eval.programs.parity.pls import PLS, PLS2, IkplsScaled
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.programs.parity.rows import ParityRow

    Rows = dict[tuple[str, str, Size], ParityRow]

pytestmark = pytest.mark.parity
AGREES = (ParityVerdict.BIT_EXACT, ParityVerdict.ROUNDING)
SAME_CONVENTION = {
    "pls": ("pls4all", "pls4all.simpls", "sklearn", "ikpls", "R.kernelpls", "R.simpls", "octave.plsregress"),
    "pls2": ("pls4all", "sklearn", "ikpls", "R.kernelpls"),
}
GBDT = "gbdt-inference-"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def run(home: Path, **options: Any) -> Rows:
    found = run_parity(home=home, max_runs=options.pop("max_runs", 2), **options)
    return {(row.method, row.backend, Size(row.n, row.p)): row for row in found.rows}


@pytest.fixture(scope="module")
def pls(home: Path) -> Rows:
    return run(home, methods=("pls", "pls2"))


@pytest.fixture(scope="module")
def trees(home: Path) -> dict[tuple[str, str], ParityRow]:
    methods = tuple(name for name in METHODS if name.startswith(GBDT))
    rows = run(home, methods=methods, registry_cells=True, max_runs=1)
    return {(method.removeprefix(GBDT), backend.partition(".")[2]): row for (method, backend, _), row in rows.items()}


def available(row: ParityRow) -> ParityRow:
    if row.status is BindingStatus.NOT_AVAILABLE:
        pytest.skip(row.message)
    return row


CELLS = [(method.name, size) for method in (PLS, PLS2) for size in method.sizes]
SAME = [(method, size, backend) for method, size in CELLS for backend in SAME_CONVENTION[method]]


@pytest.mark.parametrize(("method", "size", "backend"), SAME, ids=str)
def test_where_the_convention_is_the_same_languages_agree_to_1e_12(
    pls: Rows, method: str, size: Size, backend: str
) -> None:
    row = available(pls[method, backend, size])
    assert row.verdict in AGREES
    assert row.divergence is not None
    assert row.divergence <= 1e-12


EXCEPTIONS = [
    (method.name, size, convention.backend)
    for method in (PLS, PLS2)
    for size in method.sizes
    for convention in method.conventions
]


@pytest.mark.parametrize(("method", "size", "backend"), EXCEPTIONS, ids=str)
def test_every_convention_is_reproduced_to_1e_12(pls: Rows, method: str, size: Size, backend: str) -> None:
    row = available(pls[method, backend, size])
    (convention,) = METHODS[method].exceptions(backend)
    assert (row.verdict, row.cause) == (ParityVerdict.CONVENTION, convention.name)
    assert row.convention == convention.sentence
    assert row.n_compared == 3
    assert row.binding_verdict in (ParityVerdict.CONVENTION, None)


def test_the_own_bindings_of_pls_pass_the_gate(pls: Rows) -> None:
    assert decide(pls.values()).exit_code == 0
    assert decide(pls.values(), strict_external=True).exit_code == 0


def test_the_shipped_matrix_passes_the_gate(pls: Rows, trees: Any) -> None:
    """What a runtime cannot read has no result, and is not under test."""
    found = decide([*pls.values(), *trees.values()])
    assert (found.exit_code, found.objections) == (0, ())
    strict = decide([*pls.values(), *trees.values()], strict_external=True)
    assert strict.divergent == ()


class Manipulated(IkplsScaled):
    """It scales as documented, and is wrong besides."""

    @classmethod
    def predict(cls, session: Any, fitted: Any) -> Any:
        return 1.01 * super().predict(session, fitted)


def test_a_backend_that_hides_behind_a_convention_is_divergent(home: Path, pls: Rows) -> None:
    assert pls["pls", "ikpls.default", PLS.sizes[0]].verdict is ParityVerdict.CONVENTION
    BACKENDS.register("ikpls.default", Manipulated, replace=True)
    try:
        rows = run(home, methods=("pls",), backends=("ikpls.default",), registry_cells=True)
    finally:
        BACKENDS.register("ikpls.default", IkplsScaled, replace=True)
    assert [row.verdict for row in rows.values()] == [ParityVerdict.DIVERGENT]


class TestTrees:
    @pytest.mark.parametrize("variant", ["lightgbm", "lightgbm-missing"])
    def test_thresholds_in_single_precision_are_a_known_defect(self, trees: Any, variant: str) -> None:
        for runtime in ("onnxruntime", "boosters"):
            row = available(trees[variant, runtime])
            assert row.verdict is ParityVerdict.KNOWN_DEFECT, runtime
            assert row.cause == 'thresholds="float32"'
            assert row.max_abs > 1
            assert 0.01 < row.rows_off < 0.5
        assert trees[variant, "treelite"].verdict is ParityVerdict.BIT_EXACT
        assert trees[variant, "lleaves"].verdict in AGREES
        assert trees[variant, "lleaves"].divergence < 1e-12

    @pytest.mark.parametrize("runtime", ["onnxruntime", "boosters"])
    def test_drop_weights_that_are_ignored_are_a_known_defect(self, trees: Any, runtime: str) -> None:
        assert available(trees["xgboost-dart", runtime]).verdict is ParityVerdict.KNOWN_DEFECT
        assert trees["xgboost-dart", "treelite"].verdict in AGREES

    def test_an_early_stop_is_a_convention_of_the_wrapper(self, trees: Any) -> None:
        row = trees["xgboost-early-stopping", "sklearn"]
        assert (row.verdict, row.cause) == (ParityVerdict.CONVENTION, 'iterations="best"')
        assert row.rows_off > 0.9
        assert trees["xgboost-early-stopping", "reloaded"].verdict is ParityVerdict.BIT_EXACT

    def test_the_value_that_means_missing_is_lost_with_the_file(self, trees: Any) -> None:
        assert trees["xgboost-missing-zero", "sklearn"].verdict is ParityVerdict.KNOWN_DEFECT
        assert trees["xgboost-missing-zero", "inplace"].verdict is ParityVerdict.BIT_EXACT
        assert trees["xgboost-missing", "sklearn"].verdict is ParityVerdict.BIT_EXACT

    @pytest.mark.parametrize("runtime", ["onnxruntime", "lleaves"])
    def test_linear_leaves_that_are_ignored_are_a_known_defect(self, trees: Any, runtime: str) -> None:
        assert available(trees["lightgbm-linear", runtime]).verdict is ParityVerdict.KNOWN_DEFECT

    def test_what_a_runtime_cannot_read_is_an_error_of_its_cell(self, trees: Any) -> None:
        assert trees["lightgbm-categorical", "boosters"].status is BindingStatus.FAILED
        assert trees["lightgbm-linear", "treelite"].status is BindingStatus.FAILED
        assert trees["lightgbm-categorical", "lleaves"].verdict in AGREES

    @pytest.mark.parametrize("variant", ["catboost", "catboost-missing"])
    def test_catboost_agrees_everywhere(self, trees: Any, variant: str) -> None:
        assert all(row.verdict in AGREES for (name, _), row in trees.items() if name == variant)

    @pytest.mark.parametrize("variant", ["xgboost", "xgboost-missing"])
    def test_xgboost_agrees_everywhere(self, trees: Any, variant: str) -> None:
        assert all(row.verdict in AGREES for (name, _), row in trees.items() if name == variant)
