"""Steps of preprocessing, which a paper's protocol names: what a step is, and those that come with the package."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import DatasetError
from boosters_eval.core.modules import address_of, load_address
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import lazy_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy_module("numpy")

_COUNTERS = 5  # keeps this use of a seed apart from its others


@dataclass(frozen=True)
class StepRows:
    """Rows on their way through the steps. Categorical columns hold codes 0, 1, ...; NaN is missing."""

    x: NDArray[np.float32]
    y: NDArray[np.float64]
    categorical: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


class Step(ABC):
    """One step of preprocessing: fitted on the training rows only, then applied to the others. One object per cell."""

    encodes: ClassVar[bool] = False  # leaves no categorical column

    @classmethod
    def unsupported(cls, task: Task) -> str | None:  # noqa: ARG003 (most steps suit every task)
        """Why the step makes no sense for a task ("needs ..."), or None. Imports nothing."""
        return None

    @abstractmethod
    def fit(self, rows: StepRows, seed: int) -> StepRows:
        """Learn from the training rows, and return them as the library shall see them."""

    @abstractmethod
    def apply(self, rows: StepRows) -> StepRows:
        """Other rows, with what was learned."""

    def restore(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Predictions in the units of the original target."""
        return predictions


class OneHot(Step):
    """A column of zeros and ones per category of the training rows, after the numeric columns.

    A missing value is a category of its own; one that the training rows lack is a row of zeros.
    """

    encodes: ClassVar[bool] = True

    def fit(self, rows: StepRows, seed: int) -> StepRows:  # noqa: ARG002 (nothing is random here)
        self._known = {column: np.unique(_codes(rows.x, column)) for column in rows.categorical}
        return self.apply(rows)

    def apply(self, rows: StepRows) -> StepRows:
        numeric = _numeric(rows)
        flags = [_codes(rows.x, column)[:, None] == known for column, known in self._known.items()]
        names = [f"{_name(rows, column)}={code:g}" for column, known in self._known.items() for code in known]
        x = np.concatenate([rows.x[:, numeric], *flags], axis=1, dtype=np.float32)
        return StepRows(x=x, y=rows.y, names=(*(_name(rows, column) for column in numeric), *names))


class OrderedCounters(Step):
    """Each category as (a + 1) / (b + 2): a of the b training rows before it, in a random order, were of class 1.

    Other rows count all training rows. These are the counters of the repository catboost/benchmarks.
    """

    encodes: ClassVar[bool] = True

    @classmethod
    def unsupported(cls, task: Task) -> str | None:
        return None if task is Task.BINARY else "needs a binary target"

    def fit(self, rows: StepRows, seed: int) -> StepRows:
        from boosters_eval.datasets.generated import Stream  # noqa: PLC0415 (loads numpy)

        order = Stream(seed, _COUNTERS).order(len(rows.y))
        x = np.array(rows.x)
        self._counts: dict[int, tuple[Any, Any]] = {}
        for column in rows.categorical:
            known, codes = np.unique(_codes(rows.x, column), return_inverse=True)
            grouped = order[np.argsort(codes[order], kind="stable")]  # by category, each in the random order
            totals = np.bincount(codes)
            starts = np.repeat(np.cumsum(totals) - totals, totals)
            ones = np.concatenate([[0.0], np.cumsum(rows.y[grouped])])
            place = np.arange(len(grouped))
            x[grouped, column] = (ones[place] - ones[starts] + 1) / (place - starts + 2)
            self._counts[column] = known, (np.bincount(codes, rows.y) + 1) / (totals + 2)
        return replace(rows, x=x, categorical=())

    def apply(self, rows: StepRows) -> StepRows:
        """Count all training rows; a category that they lack is worth one half."""
        x = np.array(rows.x)
        for column, (known, worth) in self._counts.items():
            codes = _codes(rows.x, column)
            place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            x[:, column] = np.where(known[place] == codes, worth[place], 0.5)
        return replace(rows, x=x, categorical=())


class StandardizedTarget(Step):
    """The target with mean 0 and deviation 1 on the training rows; predictions are scored in the original units."""

    @classmethod
    def unsupported(cls, task: Task) -> str | None:
        return None if task in (Task.REGRESSION, Task.QUANTILE) else "needs a numeric target"

    def fit(self, rows: StepRows, seed: int) -> StepRows:  # noqa: ARG002 (nothing is random here)
        self._mean, self._std = float(rows.y.mean()), float(rows.y.std()) or 1.0
        return self.apply(rows)

    def apply(self, rows: StepRows) -> StepRows:
        return replace(rows, y=(rows.y - self._mean) / self._std)

    def restore(self, predictions: NDArray[Any]) -> NDArray[Any]:
        return predictions.astype("float64") * self._std + self._mean


class Standardize(Step):
    """Numeric columns with mean 0 and deviation 1 on the training rows."""

    def fit(self, rows: StepRows, seed: int) -> StepRows:  # noqa: ARG002 (nothing is random here)
        """Means and deviations, without the missing values."""
        self._columns = [column for column in _numeric(rows) if not np.isnan(rows.x[:, column]).all()]
        known = rows.x[:, self._columns].astype(np.float64)
        self._mean, std = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        self._std = np.where(std > 0, std, 1.0)
        return self.apply(rows)

    def apply(self, rows: StepRows) -> StepRows:
        return _changed(rows, self._columns, (rows.x[:, self._columns] - self._mean) / self._std)


class QuantileTransform(Step):
    """Numeric columns mapped to a normal distribution by the quantiles of the training rows.

    scikit-learn's transformer, with a quantile for every 30 training rows, at least 10 and at most 1000.
    """

    def fit(self, rows: StepRows, seed: int) -> StepRows:
        from sklearn.preprocessing import QuantileTransformer  # noqa: PLC0415 (not needed to start)

        self._columns = _numeric(rows)
        if not self._columns:
            raise DatasetError("The step 'quantile-transform' needs a numeric column.")
        self._transformer = QuantileTransformer(
            output_distribution="normal",
            n_quantiles=min(max(min(len(rows.y) // 30, 1000), 10), len(rows.y)),
            subsample=None,
            random_state=seed,
        ).fit(rows.x[:, self._columns])
        return self.apply(rows)

    def apply(self, rows: StepRows) -> StepRows:
        return _changed(rows, self._columns, self._transformer.transform(rows.x[:, self._columns]))


def _codes(x: NDArray[np.float32], column: int) -> NDArray[np.float32]:
    return np.nan_to_num(x[:, column], nan=-1.0)


def _numeric(rows: StepRows) -> list[int]:
    return [column for column in range(rows.x.shape[1]) if column not in rows.categorical]


def _name(rows: StepRows, column: int) -> str:
    return rows.names[column] if rows.names else str(column)


def _changed(rows: StepRows, columns: list[int], values: Any) -> StepRows:
    x = np.array(rows.x)
    x[:, columns] = values
    return replace(rows, x=x)


_OWN: dict[str, type[Step]] = {
    "one-hot": OneHot,
    "ordered-counters": OrderedCounters,
    "standardized-target": StandardizedTarget,
    "standardize": Standardize,
    "quantile-transform": QuantileTransform,
}
STEPS: Registry[type[Step]] = Registry(
    "preprocessing step", group="boosters_eval.preprocessing", builtin=lambda: dict(_OWN), fault=must_extend(Step)
)


def locate_steps(names: tuple[str, ...]) -> dict[str, str]:
    """Where the process of a cell finds the steps: a script may have registered one that it does not know."""
    found = {name: address_of(STEPS[name], "preprocessing step") for name in names}
    return {"steps": json.dumps(found)} if found else {}


def load_steps(inputs: Mapping[str, str]) -> None:
    """Register what `locate_steps` described."""
    for name, address in json.loads(inputs.get("steps", "{}")).items():
        STEPS.register(name, load_address(address), replace=True)
