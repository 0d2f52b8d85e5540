"""Partial least squares with one target (`pls`) and with three (`pls2`), centred and not scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.datasets.streams import Stream
from boosters_eval.parity.data import GeneratedData, Generator
from boosters_eval.parity.method import MethodSpec, Oracle, Size
from boosters_eval.parity.python import PythonBackend, PythonSession

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIP = "pip install 'boosters-eval[parity]'"


class LatentData(Generator):
    """Columns that depend on a few latent variables, as spectra do, and targets that depend on the same ones."""

    name = "latent"
    recipe = "1"

    @classmethod
    def missing(cls, method: MethodSpec) -> str | None:
        """Nothing is: numpy is always there."""
        del method
        return None

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


class SklearnPls(PythonBackend):
    """scikit-learn's PLSRegression, a NIPALS; converged far beyond its default tolerance."""

    name = "sklearn"
    imports = ("sklearn.cross_decomposition",)
    distributions = ("scikit-learn", "numpy", "scipy")
    install = "pip install scikit-learn"

    tol: ClassVar[float] = 1e-14

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        """Fit on all rows."""
        from sklearn.cross_decomposition import PLSRegression  # noqa: PLC0415 (imported by the lane)

        count = int(session.parameters["n_components"])
        return PLSRegression(count, scale=False, tol=cls.tol, max_iter=10_000).fit(prepared["X"], prepared["Y"])

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """Predict the rows that were fitted."""
        return _like(session, fitted.predict(session.arrays["X"]))


class SklearnDefaultPls(SklearnPls):
    """The same at scikit-learn's own tolerance."""

    name = "sklearn.default"
    tol = 1e-6


class Ikpls(PythonBackend):
    """Improved kernel PLS, algorithm 1."""

    name = "ikpls"
    imports = ("ikpls.numpy",)
    distributions = ("ikpls", "numpy")
    install = PIP
    scale: ClassVar[bool] = False

    @classmethod
    def fit(cls, session: PythonSession, prepared: Any) -> Any:
        """Fit on all rows."""
        from ikpls.numpy import PLS  # noqa: PLC0415 (imported by the lane)

        model = PLS(algorithm=1, scale_X=cls.scale, scale_Y=cls.scale)
        model.fit(
            prepared["X"], prepared["Y"].reshape(len(prepared["X"]), -1), A=int(session.parameters["n_components"])
        )
        return model

    @classmethod
    def predict(cls, session: PythonSession, fitted: Any) -> NDArray[Any]:
        """Predict the rows that were fitted."""
        count = int(session.parameters["n_components"])
        return _like(session, fitted.predict(session.arrays["X"], n_components=count))


class IkplsScaled(Ikpls):
    """The same with its default scaling."""

    name = "ikpls.default"
    scale = True


def _like(session: PythonSession, prediction: Any) -> NDArray[Any]:
    """A column for a single target is the method's vector: the one reshaping that every PLS library needs."""
    array = np.asarray(prediction)
    single = session.arrays["Y"].ndim == 1 and array.ndim == 2 and array.shape[1] == 1
    return array[:, 0] if single else array


PLS = MethodSpec(
    name="pls",
    description="Partial least squares with one target, centred, not scaled.",
    canonical="sklearn",
    oracle=Oracle(backend="sklearn", version=">=1.5"),
    backends=("sklearn", "sklearn.default", "ikpls", "ikpls.default"),
    data="latent",
    parameters={"n_components": 5, "n_targets": 1},
    sizes=(Size(200, 50), Size(1000, 50), Size(1000, 200)),
    tolerance=1e-12,
)
