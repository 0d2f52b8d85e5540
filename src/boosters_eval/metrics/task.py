"""What is predicted: the one thing that metrics, data sets and runners must agree on."""

from __future__ import annotations

from boosters_eval.core.errors import Choice


class Task(Choice):
    """What is predicted."""

    REGRESSION = "regression"
    BINARY = "binary"
    MULTICLASS = "multiclass"
    QUANTILE = "quantile"
    RANKING = "ranking"

    @property
    def is_classification(self) -> bool:
        """Whether labels are classes (so that splits are stratified)."""
        return self in (Task.BINARY, Task.MULTICLASS)
