"""A data set in memory: the one form that loaders return and runners are fed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """Rows to learn from and to be scored on.

    Categorical columns hold codes 0, 1, ...; a missing value is NaN. `groups` holds a query id per row,
    equal ids adjacent. `sensitive` holds a group label per row for the fairness metrics. `split_by` holds the times or
    the groups that `--split` may follow, under the name `split_column`; it is no feature.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    groups: NDArray[np.int64] | None = None
    sensitive: NDArray[np.int64] | None = None
    categorical: tuple[int, ...] = ()
    feature_names: tuple[str, ...] = ()
    category_names: dict[str, list[str]] | None = None
    split: NDArray[np.int8] | None = None  # an official split: 0 training, 1 test
    meta: dict[str, Any] | None = None
    split_by: NDArray[Any] | None = None
    split_column: str = ""
