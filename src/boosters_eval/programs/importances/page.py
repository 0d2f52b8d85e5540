"""The layout of the report on explanations: the answer, the checks, then what is important and who agrees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.text import lower_initial
from boosters_eval.metrics import label as metric_label
from boosters_eval.programs.importances.checks import LABELS
from boosters_eval.programs.importances.disputes import disputed_section
from boosters_eval.programs.importances.records import KINDS
from boosters_eval.programs.importances.tables import shown_order
from boosters_eval.programs.importances.wording import marked
from boosters_eval.reports.document import Card, Charts, Document, Notes, Results, Section
from boosters_eval.reports.html.features import Bees, Dot, bee_charts, dot_charts, heat_chart
from boosters_eval.stats.inference import doubled_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from boosters_eval.programs.importances.document import ImportancesDocument
    from boosters_eval.programs.importances.records import BenchmarkFindings, Kind, SwarmFeature
    from boosters_eval.reports.html.svg import Figure
    from boosters_eval.reports.tables import ReportTable

_SUBJECTS = ("checks", "importance", "agreement", "predictions")
_TITLES = {"importance": "Importances"}


def lay_out(report: ImportancesDocument) -> Document:
    """Everything that is told of a run."""
    return Document(
        report.title,
        report.headline,
        report.lead,
        report.facts,
        sections=(
            *(_subject(report, about) for about in _SUBJECTS),
            Section("attributions", "Attributions", tuple(_swarms(report)), only="page"),
            *_disputed(report),
            *report.errors(),
            Section("notes", "Notes", (Notes(report.notes),) if report.notes else ()),
            *report.ending(),
        ),
    )


def _subject(report: ImportancesDocument, about: str) -> Section:
    """The tables of one subject, each with its sentence and its pictures."""
    title = _TITLES.get(about, about.capitalize())
    blocks = tuple(_results(report, table) for table in report.tables if table.keys["about"] == about)
    return Section(title.lower(), title, blocks)


def _results(report: ImportancesDocument, table: ReportTable) -> Results:
    one = next(found for found in report.findings if found.benchmark == table.keys["benchmark"])
    kind = next((kind for kind in KINDS if kind == table.keys.get("kind")), None)
    if kind is None or table.keys["about"] not in ("importance", "agreement"):
        return Results(table)
    if table.keys["about"] == "agreement":
        return Results(table, Charts(partial(_heat, one, kind)))
    return Results(table, Charts(partial(_dots, one, kind, report.top, _series(report))))


def _disputed(report: ImportancesDocument) -> Iterator[Section]:
    """The rows on which libraries differ most; on the page each has its values and attributions in a fold."""
    for one in report.findings:
        found = (disputed_section(one, report.findings, folded=folded) for folded in (True, False))
        yield from (section for section in found if section is not None)


def _series(report: ImportancesDocument) -> dict[str, int]:
    names = dict.fromkeys(name for one in report.findings for name in one.libraries)
    return {name: index for index, name in enumerate(names)}


def _dots(one: BenchmarkFindings, kind: Kind, top: int, series: Mapping[str, int]) -> list[Figure]:
    """A dot for each feature, side by side for the libraries, on one scale."""
    order = shown_order(one, kind)[:top]
    panels: dict[str, dict[str, Dot]] = {}
    for found in one.importances:
        value = found.mean if kind == "permutation" else found.share
        if found.kind == kind and value is not None:
            panels.setdefault(marked(one, found.library), {})[found.feature] = Dot(value, found.low, found.high)
    metric = lower_initial(metric_label(one.metric)) if one.metric else "the metric"
    axis = f"how much worse {metric} gets" if kind == "permutation" else "share of the sum"
    interval = any(dot.low is not None for dots in panels.values() for dot in dots.values())
    note = "the mean over the seeds" + (", with its 95 % interval" if interval else "")
    what = f"Importance by {LABELS[kind]} on {one.benchmark}"
    return dot_charts(what, axis, order, panels, {marked(one, name): place for name, place in series.items()}, note)


def _heat(one: BenchmarkFindings, kind: Kind) -> list[Figure]:
    pairs = [pair for pair in one.agreement if pair.kind == kind]
    values = {(marked(one, pair.a), marked(one, pair.b)): pair.tau for pair in pairs}
    names = [name for library in one.libraries if ((name := marked(one, library)), name) in values]
    told = (
        "Kendall's tau: darker is closer to 1, by the same shades for every kind. On the diagonal, each library"
        " with itself over seeds"
    )
    figure = heat_chart(f"Agreement by {LABELS[kind]} on {one.benchmark}", names, values, told)
    return [figure] if figure is not None and len(names) > 1 else []


def _bees(one: BenchmarkFindings, top: int) -> list[Figure]:
    """The attributions of each sound library in the same rows, on one scale."""
    if not one.swarm:
        return []
    features = one.swarm[:top]
    libraries = [name for name in one.libraries if name in features[0].attributions]
    panels = {
        marked(one, name): {f.feature: Bees(f.attributions[name], _shades(f)) for f in features} for name in libraries
    }
    axis = f"size of attributions, summed over {one.all_outputs}" if one.outputs else "attribution to the raw score"
    return bee_charts(
        f"Attributions on {one.benchmark}",
        axis,
        [feature.feature for feature in features],
        panels,
        ("low value", "high"),
    )


def _swarms(report: ImportancesDocument) -> Iterator[Card]:
    """The pictures of the attributions, and what their points are."""
    for one in report.findings:
        if one.swarm:
            left_out = [name for name in one.libraries if any(check.kind == "shap" for check in one.failed(name))]
            points = (
                f"Each point is one of {one.n_swarm} rows of the first split, the same for every library. Its color is"
                " the rank of the feature's value among them; missing values and categories are gray."
            )
            notes = [points, *([f"Not drawn, because a check fails: {', '.join(left_out)}."] if left_out else [])]
            yield Card(one.benchmark, (Charts(partial(_bees, one, report.top)), Notes(tuple(notes))))


def _shades(feature: SwarmFeature) -> list[float | None]:
    """From 0 for the lowest value to 1 for the highest; a category has no place in between."""
    if feature.categorical:
        return [None] * len(feature.values)
    known = np.array([value for value in feature.values if value is not None])
    ranks = iter((doubled_ranks(known) / 2 / max(len(known), 1)).tolist() if len(known) else [])
    return [None if value is None else next(ranks) for value in feature.values]
