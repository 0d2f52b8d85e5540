"""What the fits of a run predicted, as diagrams: reliability of probabilities, residuals, coverage of quantiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.text import clean, format_share, group_digits, join_words
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.evidence import NoEvidence
from boosters_eval.programs.benchmark.tables.contenders import group_results
from boosters_eval.reports.html.diagrams import Diagram, Panel
from boosters_eval.stats.calibration import (
    ALPHA,
    MIDDLE,
    PredictedRows,
    bin_probabilities,
    bin_residuals,
    cover_quantiles,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from boosters_eval.programs.benchmark.evidence import FitEvidence
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.reports.html.diagrams import DiagramKind
    from boosters_eval.stats.calibration import Bin

KINDS: dict[Task, DiagramKind] = {
    Task.REGRESSION: "residuals",
    Task.BINARY: "reliability",
    Task.MULTICLASS: "reliability",
    Task.QUANTILE: "coverage",
}

_NAMED = 5  # benchmarks without a diagram; further ones are counted


@dataclass(frozen=True)
class Diagrams:
    """The diagrams of a run, and a sentence for each reason why there are no others."""

    drawn: tuple[Diagram, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """All that the fits of one competitor predicted for a table."""

    name: str
    predicted: NDArray[np.float64]
    actual: NDArray[np.float64]
    tested: PredictedRows
    quantiles: tuple[float, ...] = ()
    targets: tuple[str, ...] = ()

    def of(self, place: int) -> Said:
        """What was said of one of several targets."""
        return replace(self, predicted=self.predicted[:, place], actual=self.actual[:, place])


def collect_diagrams(results: ResultCollection, only: Iterable[DiagramKind] | None = None) -> Diagrams:
    """A diagram for each table, of several targets one for each; `only` chooses kinds."""
    drawn: list[Diagram] = []
    reasons: dict[str, list[str]] = {}
    for name, members in group_results(results).items():
        table = clean(name)
        contenders = [one for one in members.values() if one.results]
        task = contenders[0].results[0].task if contenders else Task.RANKING
        if task not in KINDS or (only is not None and KINDS[task] not in only):
            continue
        found = {contender.name: _gather(contender) for contender in contenders}
        said = [one for one in found.values() if isinstance(one, Said)]
        for library, one in found.items():
            if isinstance(one, NoEvidence):
                whom = f"{library} on {table}" if said else table
                names = reasons.setdefault(one.reason.rstrip(".").replace("its predictions", "the predictions"), [])
                names += [] if whom in names else [whom]
        if said:
            positive, targets = _name_class(results, contenders[0]), said[0].targets
            parts = {name: [one.of(place) for one in said] for place, name in enumerate(targets)} or {"": said}
            drawn += [_draw(table, clean(name), task, part, positive) for name, part in parts.items()]
    missing = (f"No diagram of {_join_few(names)}: {reason}." for reason, names in reasons.items())
    return Diagrams(tuple(drawn), tuple(missing))


def _join_few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return join_words([*names[:_NAMED], f"{more} more"] if more > 0 else list(names))


def _gather(contender: Contender) -> Said | NoEvidence:
    """What is kept of a competitor's fits; the first reason where nothing is."""
    if contender.evidence is None:
        return NoEvidence("elsewhere", "its predictions are not here")
    found = [contender.evidence.of(result) for result in contender.results]
    fits = [one for one in found if not isinstance(one, NoEvidence)]
    if not fits:
        return next(one for one in found if isinstance(one, NoEvidence))
    return Said(
        contender.name,
        np.concatenate([fit.predictions for fit in fits]),
        np.concatenate([fit.split.y_true for fit in fits]),
        PredictedRows(
            np.concatenate([fit.split.rows for fit in fits]),
            _join([_find_units(fit) for fit in fits]),
            _join([fit.split.weights for fit in fits]),
        ),
        fits[0].spec.quantiles,
        fits[0].spec.targets,
    )


def _find_units(fit: FitEvidence) -> NDArray[Any] | None:
    """What is independent: a group, a window of time (within which rows may be alike), else the row itself."""
    split = fit.result.split
    if split is not None and split.kind == "time":
        return np.full(len(fit.split.rows), fit.result.fold or 0)
    return fit.split.groups


def _join(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if len(there) == len(parts) else None


def _name_class(results: ResultCollection, contender: Contender) -> str:
    """The class whose probability is predicted where there are two."""
    audit = results.audits.get(contender.results[0].dataset_name)
    names = list(map(clean, audit.classes)) if audit is not None else []
    name = names[1] if len(names) == 2 else "1"
    return f"class {name}" if name.isdecimal() else f"'{name}'"


def _draw(table: str, target: str, task: Task, said: Sequence[Said], positive: str) -> Diagram:
    rows = group_digits(max(one.tested.count for one in said))
    sure = f"{format_share(1 - ALPHA)} intervals over {rows} rows; a point is off if its interval misses the line"
    make: Callable[[Said], list[Bin]] = _bin_classes
    if task is Task.QUANTILE:
        make = _cover
        axes = ("Predicted quantile", "Share of rows at or below it")
        about = f"Quantiles that hold are on the dashed line: as many rows are at or below them as they say. {sure}"
    elif task is Task.REGRESSION:
        make = _bin_residuals
        axes = ("Predicted", "Actual minus predicted")
        about = (
            f"Mean residuals: above the dashed line, predictions are too low. {sure}."
            f" The band holds {format_share(MIDDLE)} of the rows"
        )
    else:
        axes = (f"Predicted probability of {positive}", f"Share that is {positive}")
        if task is Task.MULTICLASS:
            axes = ("Probability of the class that is predicted", "Share that is right")
        about = f"Probabilities that hold are on the dashed line. {sure}. The bars show where the rows are"
    panels = tuple(Panel(one.name, tuple(make(one))) for one in said)
    return Diagram(KINDS[task], table, target, *axes, panels, about)


def _cover(one: Said) -> list[Bin]:
    columns = one.predicted[:, None] if one.predicted.ndim == 1 else one.predicted
    return cover_quantiles(one.quantiles, columns, one.actual, one.tested)


def _bin_residuals(one: Said) -> list[Bin]:
    return bin_residuals(one.predicted, one.actual, one.tested)


def _bin_classes(one: Said) -> list[Bin]:
    """The probability of class 1, or, of several classes, of the one that is predicted."""
    if one.predicted.ndim == 1:
        return bin_probabilities(one.predicted, one.actual == 1, one.tested)
    chosen = one.predicted.argmax(axis=1)
    return bin_probabilities(one.predicted.max(axis=1), chosen == one.actual, one.tested)
