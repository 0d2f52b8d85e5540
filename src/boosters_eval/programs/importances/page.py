"""The report on explanations as a page of one file: the answer, the checks, then what is important and who agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boosters_eval.core.text import in_sentence
from boosters_eval.metrics import label as metric_label
from boosters_eval.programs.importances.checks import LABELS
from boosters_eval.programs.importances.disputes import disputed_section
from boosters_eval.programs.importances.records import KINDS
from boosters_eval.programs.importances.tables import shown_order
from boosters_eval.programs.importances.wording import marked
from boosters_eval.reports.html import sections
from boosters_eval.reports.html.bees import Bees, bee_charts
from boosters_eval.reports.html.dots import Dot, dot_charts
from boosters_eval.reports.html.heat import heat_chart
from boosters_eval.reports.html.page import asset, page
from boosters_eval.reports.html.tables import notes_list, result_grid, sentence, text
from boosters_eval.stats.inference import doubled_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.programs.importances.document import ImportancesDocument
    from boosters_eval.programs.importances.findings import BenchmarkFindings, SwarmFeature
    from boosters_eval.programs.importances.records import Kind
    from boosters_eval.reports.html.figures import Figure
    from boosters_eval.reports.model import ReportTable


def render_importances_page(document: ImportancesDocument) -> str:
    """The whole page."""
    parts = [
        ("checks", "Checks", _about(document, "checks", {})),
        ("importances", "Importances", _about(document, "importance", _dots(document, _series(document)))),
        ("agreement", "Agreement", _about(document, "agreement", _heats(document))),
        ("predictions", "Predictions", _about(document, "predictions", {})),
        ("attributions", "Attributions", "".join(_swarm(one, document) for one in document.findings)),
        *(_rows(one, document) for one in document.findings),
        *((one.anchor, one.title, sections.further(one)) for one in document.sections if one.anchor == "errors"),
        ("notes", "Notes", sections.notes(document)),
        ("environment", "Environment", sections.environment(document.environment)),
        ("reproduce", "Reproduce", sections.reproduce(document)),
    ]
    style = asset(__package__, "importances.css")
    return page(document.title, document.lead, sections.summary(document), parts, style=style)


def importances_figures(document: ImportancesDocument) -> list[Figure]:
    """Every chart of the page."""
    drawn = [*_dots(document, _series(document)).values(), *_heats(document).values()]
    return [figure for figures in drawn for figure in figures] + [
        figure for one in document.findings for figure in _bees(one, document)
    ]


def _series(document: ImportancesDocument) -> dict[str, int]:
    names = dict.fromkeys(name for one in document.findings for name in one.libraries)
    return {name: index for index, name in enumerate(names)}


Drawn = dict[tuple[str, str], "list[Figure]"]  # by benchmark and kind


def _about(document: ImportancesDocument, about: str, drawn: Mapping[tuple[str, str], Sequence[Figure]]) -> str:
    """The cards of one subject: each with its sentence, its pictures and its table."""
    return "".join(
        _card(table, drawn.get((table.keys["benchmark"], table.keys.get("kind", "")), ()))
        for table in document.tables
        if table.keys["about"] == about
    )


def _card(table: ReportTable, figures: Sequence[Figure]) -> str:
    said = f'<p class="answer">{sentence(table.answer)}</p>' if table.answer else ""
    return (
        f'<article class="card"><h4>{text(table.title)}</h4>{said}{_charts(figures)}'
        f"{sections.scroll(result_grid(table, kind='sortable'), table.name)}{notes_list(table.notes)}</article>"
    )


def _charts(figures: Iterable[Figure]) -> str:
    found = "".join(figure.html() for figure in figures)
    return f'<div class="charts">{found}</div>' if found else ""


def _dots(document: ImportancesDocument, series: Mapping[str, int]) -> Drawn:
    return {
        (one.benchmark, kind): _dots_of(one, kind, document.top, series) for one in document.findings for kind in KINDS
    }


def _dots_of(one: BenchmarkFindings, kind: Kind, top: int, series: Mapping[str, int]) -> list[Figure]:
    """A dot for each feature, side by side for the libraries, on one scale."""
    order = shown_order(one, kind)[:top]
    panels: dict[str, dict[str, Dot]] = {}
    for found in one.importances:
        value = found.mean if kind == "permutation" else found.share
        if found.kind == kind and value is not None:
            panels.setdefault(marked(one, found.library), {})[found.feature] = Dot(value, found.low, found.high)
    metric = in_sentence(metric_label(one.metric)) if one.metric else "the metric"
    axis = f"how much worse {metric} gets" if kind == "permutation" else "share of the sum"
    interval = any(dot.low is not None for dots in panels.values() for dot in dots.values())
    note = "the mean over the seeds" + (", with its 95 % interval" if interval else "")
    what = f"Importance by {LABELS[kind]} on {one.benchmark}"
    return dot_charts(what, axis, order, panels, {marked(one, name): place for name, place in series.items()}, note)


def _heats(document: ImportancesDocument) -> Drawn:
    out: Drawn = {}
    for one in document.findings:
        for kind in KINDS:
            pairs = [pair for pair in one.agreement if pair.kind == kind]
            values = {(marked(one, pair.a), marked(one, pair.b)): pair.tau for pair in pairs}
            names = [name for library in one.libraries if ((name := marked(one, library)), name) in values]
            told = (
                "Kendall's tau: darker is closer to 1, by the same shades for every kind. On the diagonal, each library"
                " with itself over seeds"
            )
            figure = heat_chart(f"Agreement by {LABELS[kind]} on {one.benchmark}", names, values, told)
            out[one.benchmark, kind] = [figure] if figure is not None and len(names) > 1 else []
    return out


def _bees(one: BenchmarkFindings, document: ImportancesDocument) -> list[Figure]:
    """The attributions of each sound library in the same rows, on one scale."""
    if not one.swarm:
        return []
    features = one.swarm[: document.top]
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


def _swarm(one: BenchmarkFindings, document: ImportancesDocument) -> str:
    """The pictures of the attributions, and what their points are."""
    drawn = _bees(one, document)
    if not drawn:
        return ""
    left_out = [name for name in one.libraries if any(check.kind == "shap" for check in one.failed(name))]
    points = (
        f"Each point is one of {one.n_swarm} rows of the first split, the same for every library. Its color is the"
        " rank of the feature's value among them; missing values and categories are gray."
    )
    notes = [
        points,
        *([f"Not drawn, because a check fails: {', '.join(left_out)}."] if left_out else []),
    ]
    return f'<article class="card"><h4>{text(one.benchmark)}</h4>{_charts(drawn)}{notes_list(notes)}</article>'


def _rows(one: BenchmarkFindings, document: ImportancesDocument) -> tuple[str, str, str]:
    """The rows on which libraries differ most, each with its values and attributions in a fold."""
    section = disputed_section(one, document.findings, folded=True)
    return ("rows", "", "") if section is None else (section.anchor, section.short, sections.further(section))


def _shades(feature: SwarmFeature) -> list[float | None]:
    """From 0 for the lowest value to 1 for the highest; a category has no place in between."""
    if feature.categorical:
        return [None] * len(feature.values)
    known = np.array([value for value in feature.values if value is not None])
    ranks = iter((doubled_ranks(known) / 2 / max(len(known), 1)).tolist() if len(known) else [])
    return [None if value is None else next(ranks) for value in feature.values]
