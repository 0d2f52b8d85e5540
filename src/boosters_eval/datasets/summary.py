"""What a stored table looks like: facts, and the distribution of its target as a small text plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.datasets.audit_store import audit_of
from boosters_eval.datasets.store import materialize, open_stored
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.datasets.audit import DataAudit
    from boosters_eval.datasets.config import DatasetConfig
    from boosters_eval.datasets.table import Table

BINS = 10
MOST_CLASSES = 20  # classes beyond these share one bar
WIDTH = 40


@dataclass(frozen=True)
class Bar:
    """One line of the plot."""

    label: str
    count: int


@dataclass(frozen=True)
class DatasetSummary:
    """Facts in the order in which they are shown, and the target's distribution."""

    facts: dict[str, Any]
    bars: tuple[Bar, ...]
    audit: DataAudit


def summarize(config: DatasetConfig) -> DatasetSummary:
    """Load the data set (from the cache where possible) and describe it."""
    stored = materialize(config)
    table = open_stored(stored.path)
    names = stored.feature_names or tuple(f"column {i}" for i in range(stored.n_features))
    facts = {
        "name": config.name,
        "task": config.task.value,
        "rows": stored.n_samples,
        "columns": stored.n_features,
        "classes": stored.n_classes,
        "queries": stored.n_groups,
        "missing values": int(np.isnan(table.x).sum()),
        "categorical": [names[position] for position in stored.categorical],
        "weights": stored.weighted,
        "official split": table.split is not None,
        "quantiles": list(config.quantiles),
        "target": _target_facts(config.task, table),
        "description": config.description,
        "source": config.source,
        "license": config.license,
        "digest": stored.digest,
        "kept in": str(stored.path),
    }
    audit = audit_of(config, stored)
    return DatasetSummary(facts, tuple(_bars(config.task, np.asarray(table.y), audit)), audit)


def _target_facts(task: Task, table: Table) -> dict[str, float]:
    y = np.asarray(table.y)
    if task.is_classification:
        return {"largest class": float(np.bincount(y.astype(np.int64)).max() / len(y))}
    return {"mean": float(y.mean()), "sd": float(y.std(ddof=1)), "min": float(y.min()), "max": float(y.max())}


def _bars(task: Task, y: NDArray[np.float64], audit: DataAudit) -> list[Bar]:
    if task.is_classification or task is Task.RANKING:
        values, counts = np.unique(y, return_counts=True)
        labels = [f"{value:g}" for value in values]
        if task.is_classification and len(audit.classes) == len(labels):  # by their names, in the order of their codes
            labels = [_one_line(name) for name in audit.classes]
        bars = [Bar(label, int(count)) for label, count in zip(labels, counts, strict=True)]
        rest = sum(bar.count for bar in bars[MOST_CLASSES:])
        return [*bars[:MOST_CLASSES], *([Bar("others", rest)] if rest else [])]
    counts, edges = np.histogram(y, bins=BINS)
    return [Bar(f"{low:.4g} .. {high:.4g}", int(n)) for low, high, n in zip(edges, edges[1:], counts, strict=False)]


def plot(bars: tuple[Bar, ...]) -> str:
    """The bars as lines of plain ASCII; every bar that is not empty has at least one mark."""
    most = max(bar.count for bar in bars)
    left = max(len(bar.label) for bar in bars)
    right = len(str(most))
    lines = []
    for bar in bars:
        length = max(round(WIDTH * bar.count / most), 1 if bar.count else 0)
        lines.append(f"{bar.label:>{left}}  {bar.count:>{right}}  {'#' * length}".rstrip())
    return "\n".join(lines)


def audit_text(audit: DataAudit) -> list[str]:
    """The audit in full, as lines: the data set, its columns by what they are used as, and the findings."""
    lines = [audit.headline]
    for role, names in audit.by_role().items():
        lines.append(f"  {role}: {', '.join(map(_one_line, names))}")
    found = {finding.column for finding in audit.findings}
    for column in audit.columns:
        if column.note and column.name not in found:
            named = f"'{column.name}'" in column.note
            lines.append(f"  {column.note}" if named else f"  {column.name}: {column.note}")
    lines += [f"  ! {finding}" for finding in audit.findings] or ["  nothing suspicious"]
    return [_one_line(line) for line in lines]


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())
