"""Partial least squares with one target (`pls`) and with three (`pls2`), centered and not scaled."""
# ruff: noqa: PLC0415 (what a session uses is imported by its lane, before the clock starts)

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.datasets.generated import Stream
from boosters_eval.programs.parity.backend import ProcessBackend, PythonBackend, PythonSession
from boosters_eval.programs.parity.method import (
    Convention,
    GeneratedData,
    Generator,
    MethodSpec,
    Oracle,
    Size,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

WORKERS = Path(__file__).parent / "workers"
PIP = "pip install 'boosters-eval[parity]'"


class LatentData(Generator):
    """Columns that depend on a few latent variables, as spectra do, and targets that depend on the same ones."""

    name = "latent"
    recipe = "1"

    @classmethod
    def generate(cls, method: MethodSpec, size: Size, seed: int, shared: dict[str, bytes]) -> GeneratedData:
        """Twelve latent variables of decreasing weight, mixed into the columns, with noise."""
        del shared
        stream = Stream(seed, size.n, size.p)
        n_latent, n_targets = 12, int(method.parameters.get("n_targets", 1))
        weights = 0.7 ** np.arange(n_latent)
        latent = stream.noise(size.n * n_latent).reshape(size.n, n_latent) * weights
        x = latent @ stream.noise(n_latent * size.p).reshape(n_latent, size.p)
        x += 0.05 * stream.noise(size.n * size.p).reshape(size.n, size.p)
        y = latent @ stream.noise(n_latent * n_targets).reshape(n_latent, n_targets)
        y += 0.1 * stream.noise(size.n * n_targets).reshape(size.n, n_targets) + 30.0
        return GeneratedData({"X": x, "Y": y[:, 0] if n_targets == 1 else y})


class PlsBackend(PythonBackend):
    """Fits on all rows, and predicts them: what is fitted is a function of them."""

    install = PIP

    @classmethod
    def predict(cls, session: PythonSession, fitted: Callable[[NDArray[np.float64]], Any]) -> NDArray[Any]:
        """A column for a single target is the method's vector: the one reshaping that every PLS library needs."""
        array = np.asarray(fitted(session.arrays["X"]))
        single = session.arrays["Y"].ndim == 1 and array.ndim == 2 and array.shape[1] == 1
        return array[:, 0] if single else array


class SklearnPls(PlsBackend):
    """scikit-learn's PLSRegression, a NIPALS; converged far beyond its default tolerance."""

    name = "sklearn"
    imports = ("sklearn.cross_decomposition",)
    distributions = ("scikit-learn", "numpy", "scipy")
    install = "pip install scikit-learn"

    tol: ClassVar[float] = 1e-28  # of a square: the weights are then exact to 1e-14

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        from sklearn.cross_decomposition import PLSRegression

        count = int(session.parameters["n_components"])
        model = PLSRegression(count, scale=False, tol=cls.tol, max_iter=10_000)
        return model.fit(prepared["X"], prepared["Y"]).predict


class SklearnDefaultPls(SklearnPls):
    """The same at scikit-learn's own tolerance."""

    name = "sklearn.default"
    tol = 1e-6


class Ikpls(PlsBackend):
    """Improved kernel PLS, algorithm 1."""

    name = "ikpls"
    imports = ("ikpls.numpy",)
    distributions = ("ikpls", "numpy")
    scale: ClassVar[bool] = False

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        from ikpls.numpy import PLS

        x, model = prepared["X"], PLS(algorithm=1, scale_X=cls.scale, scale_Y=cls.scale)
        model.fit(x, prepared["Y"].reshape(len(x), -1), A=int(session.parameters["n_components"]))
        return partial(model.predict, n_components=int(session.parameters["n_components"]))


class IkplsScaled(Ikpls):
    """The same with its default scaling."""

    name = "ikpls.default"
    scale = True


class NumpyPls(PlsBackend):
    """Written out, with what others do by convention as parameters."""

    name = "numpy"
    imports = ("numpy",)
    distributions = ("numpy",)
    install = "pip install numpy"

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        options = session.parameters
        x, y = prepared["X"], prepared["Y"].reshape(len(prepared["X"]), -1)
        mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
        spread_x = x.std(axis=0, ddof=1) if options.get("scale_x") else 1.0
        spread_y = y.std(axis=0, ddof=1) if options.get("scale_y") else 1.0
        x, y, count = (x - mean_x) / spread_x, (y - mean_y) / spread_y, int(options["n_components"])
        simpls = options.get("algorithm") == "simpls"
        weights = _simpls(x, y, count) if simpls else _nipals(x, y, count, float(options.get("tol", 1e-28)))
        return lambda new: ((new - mean_x) / spread_x) @ weights * spread_y + mean_y


def _nipals(x: NDArray[np.float64], y: NDArray[np.float64], count: int, tol: float) -> NDArray[np.float64]:
    """The coefficients; what was explained is taken from the columns after each component."""
    found: list[tuple[NDArray[np.float64], ...]] = []
    for _ in range(count):
        u, last = y[:, 0], np.full(x.shape[1], 100.0)
        for _ in range(10_000):
            w = x.T @ u / (u @ u)
            w /= np.sqrt(w @ w)
            t = x @ w
            q = y.T @ t / (t @ t)
            u = y @ q / (q @ q)
            change, last = w - last, w
            if y.shape[1] == 1 or change @ change < tol:
                break
        p = x.T @ t / (t @ t)
        x, y = x - np.outer(t, p), y - np.outer(t, q)
        found.append((w, p, q))
    weights, loadings, targets = (np.column_stack(parts) for parts in zip(*found, strict=True))
    return weights @ np.linalg.solve(loadings.T @ weights, targets.T)


def _simpls(x: NDArray[np.float64], y: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The coefficients; what was explained is taken from the covariance after each component."""
    covariance, basis = x.T @ y, np.zeros((x.shape[1], 0))
    coefficients = np.zeros((x.shape[1], y.shape[1]))
    for _ in range(count):
        w = covariance @ np.linalg.svd(covariance, full_matrices=False)[2][0]
        w /= np.linalg.norm(x @ w)
        t = x @ w
        coefficients += np.outer(w, y.T @ t)
        v = x.T @ t
        for _ in range(2):
            v = v - basis @ (basis.T @ v)
        v /= np.linalg.norm(v)
        basis = np.column_stack([basis, v])
        covariance = covariance - np.outer(v, v @ covariance)
    return coefficients


class Pls4all(PlsBackend):
    """The raw binding of pls4all: NIPALS, centered, not scaled."""

    name = "pls4all"
    own = True
    imports = ("pls4all",)
    distributions = ("pls4all", "numpy")
    solver: ClassVar[str] = "NIPALS"

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        from pls4all import Algorithm, Config, Context, Deflation, Model, Solver

        context, config = Context(), Config()
        context.num_threads = session.threads
        config.algorithm = Algorithm.PLS_REGRESSION
        config.solver = getattr(Solver, cls.solver)
        config.deflation = Deflation.REGRESSION
        config.n_components = int(session.parameters["n_components"])
        config.center_x = config.center_y = True
        config.scale_x = config.scale_y = False
        config.tol = 1e-28
        y = prepared["Y"].reshape(len(prepared["X"]), -1)
        return partial(Model.fit(context, config, prepared["X"], y).predict, context)


class Pls4allSimpls(Pls4all):
    name = "pls4all.simpls"
    solver = "SIMPLS"


class Pls4allSklearn(PlsBackend):
    """The scikit-learn facade of pls4all with its own defaults, which scale."""

    name = "pls4all.sklearn"
    own = True
    imports = ("pls4all.sklearn",)
    distributions = ("pls4all", "scikit-learn", "numpy")

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        from pls4all.sklearn import PLSRegression

        model = PLSRegression(n_components=int(session.parameters["n_components"]))
        return model.fit(prepared["X"], prepared["Y"]).predict


class RPls(ProcessBackend):
    name = "R.kernelpls"
    language = "R"
    program = "Rscript"
    install = "apt-get install r-base-core r-cran-pls r-cran-jsonlite"
    options: ClassVar[dict[str, Any]] = {"method": "kernelpls", "scale": False}

    @classmethod
    def command(cls) -> tuple[str, ...]:
        return (cls.program, "--vanilla", str(WORKERS / "pls.R"))


class RSimpls(RPls):
    name = "R.simpls"
    options: ClassVar[dict[str, Any]] = {"method": "simpls", "scale": False}


class OctavePls(ProcessBackend):
    """Octave's plsregress, a SIMPLS."""

    name = "octave.plsregress"
    language = "octave"
    program = "octave-cli"
    install = "apt-get install octave octave-statistics"

    @classmethod
    def command(cls) -> tuple[str, ...]:
        return (cls.program, "--norc", "--quiet", str(WORKERS / "pls.m"))


_BACKENDS = (
    *("pls4all", "pls4all.simpls", "pls4all.sklearn"),
    *("sklearn", "sklearn.default", "numpy", "ikpls", "ikpls.default"),
    *("R.kernelpls", "R.simpls", "octave.plsregress"),
)
_SCALES_X = "By default it scales the columns of X to unit variance; the method only centers them."
_SCALES = "By default it scales the columns of X and Y to unit variance; the method only centers them."
_FACADE = "Its scikit-learn facade is a SIMPLS that scales the columns of X; the method is a NIPALS that does not."
_STOPS = "Its NIPALS stops when the weights move by less than 1e-6, squared; the oracle's goes on to 1e-28."
_SIMPLS = "SIMPLS deflates the covariance; with several targets its components are not those of NIPALS."
_PROBES = (
    Variant(sentence="agrees with one component less", changes={"n_components": 4}),
    Variant(sentence="agrees with one component more", changes={"n_components": 6}),
    Variant(sentence="agrees with SIMPLS", changes={"algorithm": "simpls"}),
    Variant(sentence="agrees if the columns of X are scaled to unit variance", changes={"scale_x": True}),
    Variant(sentence="agrees if the columns of Y are scaled to unit variance", changes={"scale_y": True}),
)
_SHARED = {
    "canonical": "pls4all",
    "oracle": Oracle(backend="sklearn", version=">=1.5"),
    "backends": _BACKENDS,
    "data": "latent",
    "tolerance": 1e-12,
    "transformer": "numpy",
    "probes": _PROBES,
}
PLS = MethodSpec(
    name="pls",
    description="Partial least squares with one target, centered, not scaled.",
    parameters={"n_components": 5, "n_targets": 1},
    sizes=(Size(200, 50), Size(1000, 50), Size(1000, 200)),
    conventions=(
        Convention(backend="pls4all.sklearn", sentence=_SCALES_X, changes={"scale_x": True}),
        Convention(backend="ikpls.default", sentence=_SCALES, changes={"scale_x": True, "scale_y": True}),
    ),
    **_SHARED,
)
PLS2 = MethodSpec(
    name="pls2",
    description="Partial least squares with three targets, centered, not scaled.",
    parameters={"n_components": 5, "n_targets": 3},
    sizes=(Size(200, 50), Size(1000, 50)),
    conventions=(
        Convention(backend="pls4all.sklearn", sentence=_FACADE, changes={"algorithm": "simpls", "scale_x": True}),
        Convention(backend="ikpls.default", sentence=_SCALES, changes={"scale_x": True, "scale_y": True}),
        Convention(backend="sklearn.default", sentence=_STOPS, changes={"tol": 1e-6}),
        *(
            Convention(backend=name, sentence=_SIMPLS, changes={"algorithm": "simpls"})
            for name in ("pls4all.simpls", "R.simpls", "octave.plsregress")
        ),
    ),
    **_SHARED,
)
