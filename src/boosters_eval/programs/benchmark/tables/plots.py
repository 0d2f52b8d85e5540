"""The charts of the report, one kind at a time, for notebooks and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from boosters_eval.core.errors import ConfigError, pick, require
from boosters_eval.metrics import pick_metric
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.diagrams import KINDS, collect_diagrams
from boosters_eval.programs.benchmark.tables.general import rank_over_datasets
from boosters_eval.programs.benchmark.tables.verdicts import find_deciding
from boosters_eval.reports.html.charts import cost_chart, forest_chart, metric_chart, rank_chart
from boosters_eval.reports.html.diagrams import DiagramKind, draw_diagrams
from boosters_eval.reports.html.plots import Plot
from boosters_eval.reports.html.svg import series_of

if TYPE_CHECKING:
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.reports.html.svg import Figure
    from boosters_eval.reports.tables import Report, ReportTable
    from boosters_eval.stats.significance import TestName

PlotKind = Literal["strips", "forest", "pareto", "ranks", "reliability", "residuals", "coverage"]
_NEEDS = {
    "strips": "a cell that finished",
    "forest": "two libraries with common splits and a metric that is judged",
    "pareto": "two libraries with a primary metric and training times",
    "ranks": "two data sets with the same booster, and two libraries that finished on both",
    "reliability": "a binary or multiclass task",
    "residuals": "a regression task",
    "coverage": "a quantile task",
}


def plot(
    results: ResultCollection,
    kind: PlotKind,
    *,
    metric: str | None = None,
    reference: str | None = None,
    test: TestName = "rows",
    alpha: float | None = None,
    margin: Any = None,
) -> Plot:
    """One chart per benchmark; `ranks` has one per booster."""
    kind = cast("PlotKind", pick("chart", kind, get_args(PlotKind)))
    for name, value in (("metric", metric), ("reference", reference)):
        require(name, value, (str, type(None)), "a name")
    if kind in KINDS.values():
        return _plot_predictions(results, cast("DiagramKind", kind))
    report = build_tables(results, test=test, alpha=alpha, margin=margin)
    if reference is not None:
        reference = pick("reference", reference, [row.label for table in report.tables for row in table.rows])
    if metric is not None:
        metric = pick_metric("metric", metric, [column.name for table in report.tables for column in table.columns])
    found = _figures(report, kind, metric, reference)
    figures = tuple(figure for figure in found if figure is not None)
    if not figures:
        raise ConfigError(f"There is nothing to draw: the chart '{kind}' needs {_NEEDS[kind]}.")
    return Plot(figures)


def _plot_predictions(results: ResultCollection, kind: DiagramKind) -> Plot:
    found = collect_diagrams(results, only=(kind,))
    if not found.drawn:
        raise ConfigError(
            " ".join(found.missing) or f"There is nothing to draw: the chart '{kind}' needs {_NEEDS[kind]}."
        )
    names = dict.fromkeys(panel.name for diagram in found.drawn for panel in diagram.panels)
    series = {name: index for index, name in enumerate(names)}
    return Plot(tuple(draw_diagrams(found.drawn, series)))


def _figures(report: Report, kind: PlotKind, metric: str | None, reference: str | None) -> list[Figure | None]:
    rankings = rank_over_datasets(report.tables, alpha=report.alpha)
    series = series_of(report.tables, rankings)
    if kind == "ranks":
        return [rank_chart(ranking, series) for ranking in rankings]
    if kind == "pareto":
        return [cost_chart(table, series) for table in report.tables]
    placed = [(table, position) for table in report.tables if (position := _position(table, metric)) is not None]
    if kind == "strips":
        return [metric_chart(table, position, series, report.alpha) for table, position in placed]
    return [forest_chart(table, position, reference=reference) for table, position in placed]


def _position(table: ReportTable, metric: str | None) -> int | None:
    if metric is None:
        decides = find_deciding(table.columns)
        return table.columns.index(decides) if decides else 0 if table.columns else None
    return next((i for i, column in enumerate(table.columns) if column.name == metric), None)
