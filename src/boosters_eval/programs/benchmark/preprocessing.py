"""The steps of preprocessing that come with the package."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import DatasetError
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.paper_protocol import Step, StepRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COUNTERS = 5  # keeps this use of a seed apart from its others


class OneHot(Step):
    """A column of zeros and ones per category of the training rows, after the numeric columns.

    A missing value is a category of its own; one that the training rows lack is a row of zeros.
    """

    encodes: ClassVar[bool] = True

    def fit(self, rows: StepRows, seed: int) -> StepRows:  # noqa: ARG002 (nothing is random here)
        """Find the categories."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        self._known = {column: np.unique(_codes(rows.x, column)) for column in rows.categorical}
        return self.apply(rows)

    def apply(self, rows: StepRows) -> StepRows:
        """Encode."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

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
        """They count the rows of class 1."""
        return None if task is Task.BINARY else "needs a binary target"

    def fit(self, rows: StepRows, seed: int) -> StepRows:
        """Count in a random order."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        from boosters_eval.datasets.generated import Stream  # noqa: PLC0415 (needs numpy)

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
        import numpy as np  # noqa: PLC0415 (not needed to start)

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
        """Classes have no units."""
        return None if task in (Task.REGRESSION, Task.QUANTILE) else "needs a numeric target"

    def fit(self, rows: StepRows, seed: int) -> StepRows:  # noqa: ARG002 (nothing is random here)
        """Mean and deviation of the training rows."""
        self._mean, self._std = float(rows.y.mean()), float(rows.y.std()) or 1.0
        return self.apply(rows)

    def apply(self, rows: StepRows) -> StepRows:
        """For the rows to stop early on."""
        return replace(rows, y=(rows.y - self._mean) / self._std)

    def restore(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Back to the original units."""
        return predictions.astype("float64") * self._std + self._mean


class Standardize(Step):
    """Numeric columns with mean 0 and deviation 1 on the training rows."""

    def fit(self, rows: StepRows, seed: int) -> StepRows:  # noqa: ARG002 (nothing is random here)
        """Means and deviations, without the missing values."""
        import numpy as np  # noqa: PLC0415 (not needed to start)

        self._columns = [column for column in _numeric(rows) if not np.isnan(rows.x[:, column]).all()]
        known = rows.x[:, self._columns].astype(np.float64)
        self._mean, std = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        self._std = np.where(std > 0, std, 1.0)
        return self.apply(rows)

    def apply(self, rows: StepRows) -> StepRows:
        """Scale."""
        return _changed(rows, self._columns, (rows.x[:, self._columns] - self._mean) / self._std)


class QuantileTransform(Step):
    """Numeric columns mapped to a normal distribution by the quantiles of the training rows.

    scikit-learn's transformer, with a quantile for every 30 training rows, at least 10 and at most 1000.
    """

    def fit(self, rows: StepRows, seed: int) -> StepRows:
        """Quantiles."""
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
        """Map."""
        return _changed(rows, self._columns, self._transformer.transform(rows.x[:, self._columns]))


OWN: dict[str, type[Step]] = {
    "one-hot": OneHot,
    "ordered-counters": OrderedCounters,
    "standardized-target": StandardizedTarget,
    "standardize": Standardize,
    "quantile-transform": QuantileTransform,
}


def _codes(x: NDArray[np.float32], column: int) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415 (not needed to start)

    return np.nan_to_num(x[:, column], nan=-1.0)


def _numeric(rows: StepRows) -> list[int]:
    return [column for column in range(rows.x.shape[1]) if column not in rows.categorical]


def _name(rows: StepRows, column: int) -> str:
    return rows.names[column] if rows.names else str(column)


def _changed(rows: StepRows, columns: list[int], values: Any) -> StepRows:
    import numpy as np  # noqa: PLC0415 (not needed to start)

    x = np.array(rows.x)
    x[:, columns] = values
    return replace(rows, x=x)
