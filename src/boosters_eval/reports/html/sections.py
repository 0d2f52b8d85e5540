"""The sections of the page, each an HTML string, empty where there is nothing to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.reports.full_markdown import (
    BENCHMARK_HEADINGS,
    comparison_cells,
    details_of,
    ranking_notes,
    ranking_title,
    shown_comparisons,
    verdict_headings,
)
from boosters_eval.reports.html.charts import metric_chart, rank_chart, ratio_chart, time_quality_chart
from boosters_eval.reports.html.tables import grid, notes_list, numeric, plain, result_grid, text
from boosters_eval.reports.numbers import MISSING, count, p_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.benchmark.tables.document import Failure, Parameters, ReportDocument
    from boosters_eval.reports.model import Ranking, Table
    from boosters_eval.runners.parameters import Mark


def facts(document: ReportDocument) -> str:
    """The size of the evidence, at a glance."""
    verdicts = [item.verdict for item in shown_comparisons(document)]
    decided = sum(verdict != "inconclusive" for verdict in verdicts)
    seeds = f"{len(document.seeds)} x {document.folds}" if document.folds else str(len(document.seeds))
    items = [
        ("Benchmarks", count(len(document.tables)), ""),
        ("Libraries", count(len(document.libraries)), ""),
        ("Seeds x folds" if document.folds else "Seeds", seeds, ""),
        ("Cells finished", count(document.n_results), ""),
        ("Cells failed", count(document.n_failed), "alarm" if document.n_failed else ""),
        ("Pairs decided", f"{decided} of {len(verdicts)}", ""),
    ]
    cells = "".join(
        f"<div{f' class={kind}' if kind else ''}><dt>{text(name)}</dt><dd>{text(value)}</dd></div>"
        for name, value, kind in items
    )
    return f'<dl class="facts">{cells}</dl>'


def results(document: ReportDocument, series: Mapping[str, int]) -> str:
    """One card a benchmark, by task."""
    if not document.tables:
        return "<p>No cell finished.</p>"
    parts = [_filter("Filter benchmarks", "#results .card", groups="#results .task")]
    for task in dict.fromkeys(table.task for table in document.tables):
        cards = "".join(_card(table, series, document.alpha) for table in document.tables if table.task == task)
        parts.append(f'<div class="task"><h3>{text(task)}</h3>{cards}</div>')
    return "".join(parts)


def _card(table: Table, series: Mapping[str, int], alpha: float) -> str:
    words = " ".join([table.name, table.task, table.dataset, table.booster, *(row.label for row in table.rows)])
    title = text(table.title.removeprefix(table.name).strip())
    primary = next((i for i, column in enumerate(table.columns) if column.primary), 0)
    charts = metric_chart(table, primary, series, alpha) + time_quality_chart(table, series) if table.columns else ""
    return (
        f'<article class="card" data-search="{text(words)}"><h4>{text(table.name)}<small>{title}</small></h4>'
        f"{_scroll(result_grid(table, kind='sortable'), table.name)}"
        f"{f'<div class=charts>{charts}</div>' if charts else ''}{notes_list(table.notes)}</article>"
    )


def across(document: ReportDocument, series: Mapping[str, int]) -> str:
    """What can be said over all benchmarks."""
    figures = "".join(rank_chart(ranking, series) for ranking in document.rankings)
    figures += ratio_chart(document.tables, series)
    tables = "".join(map(_ranking, document.rankings))
    return (f'<div class="card charts">{figures}</div>' if figures else "") + tables


def _ranking(ranking: Ranking) -> str:
    rows = [
        [
            plain(pair.a),
            plain(pair.b),
            *(numeric(str(value), value) for value in (pair.wins, pair.ties, pair.losses)),
            numeric(MISSING if pair.p is None else p_value(pair.p), pair.p),
        ]
        for pair in ranking.pairs
    ]
    table = grid(["A", "B", "A wins", "Ties", "A loses", "p (Wilcoxon, Holm)"], rows, kind="sortable")
    title = ranking_title(ranking)
    return f'<div class="card"><h4>{text(title)}</h4>{_scroll(table, title)}{notes_list(ranking_notes(ranking))}</div>'


def tests(document: ReportDocument) -> str:
    """Every pair's verdict on the primary metric."""
    rows = []
    for item in shown_comparisons(document):
        size, bounds, p = comparison_cells(item)
        value = item.percent if item.percent is not None else item.difference
        rows.append(
            [
                *map(plain, (item.table, item.label, item.a, item.b)),
                numeric(size, value),
                numeric(bounds, item.low),
                numeric(p, item.p),
                numeric(str(item.n), item.n),
                f'<td title="{text(item.text)}"><span class="verdict {item.verdict}">{item.verdict}</span></td>',
            ]
        )
    if not rows:
        return ""
    table = grid(verdict_headings(document), rows, kind="sortable")
    return f'{_filter("Filter pairs", "#tests tbody tr")}<div class="card">{_scroll(table, "Statistical tests")}</div>'


def notes(document: ReportDocument) -> str:
    """What holds for more than one benchmark."""
    return f'<div class="card">{notes_list(document.notes)}</div>' if document.notes else ""


def benchmarks(document: ReportDocument) -> str:
    """What was run, on how much."""
    if not document.configs:
        return ""
    rows = [
        [
            *map(plain, (item.config, item.dataset, item.task, item.booster, item.variant or MISSING, item.profile)),
            numeric(MISSING if item.n_train is None else count(item.n_train), item.n_train),
            numeric(MISSING if item.n_valid is None else count(item.n_valid), item.n_valid),
            numeric(str(item.threads), item.threads),
            plain(item.canonical or MISSING),
        ]
        for item in document.configs
    ]
    table = grid(BENCHMARK_HEADINGS, rows, kind="sortable wide")
    return f'{_filter("Filter configs", "#benchmarks tbody tr")}<div class="card">{_scroll(table, "Benchmarks")}</div>'


def parameters(document: ReportDocument) -> str:
    """What each library was given, folded."""
    if not document.parameters:
        return ""
    return f'<div class="card">{"".join(map(_parameters, document.parameters))}</div>'


def _parameters(item: Parameters) -> str:
    title = f"{item.library} {item.version or ''}".strip()
    where = item.configs[0] if len(item.configs) == 1 else f"{len(item.configs)} configs"
    table = grid(["Native parameter", "Value"], ([plain(k), plain(v)] for k, v in item.native.items()), kind="params")
    marks = "".join(map(_mark, item.marks))
    used = f"<p class=lead>Used in {text(', '.join(item.configs))}.</p>"
    body = used + _scroll(table, f"Parameters of {title}") + (f'<ul class="notes">{marks}</ul>' if marks else "")
    inexact = f", {len(item.marks)} not exact" if item.marks else ""
    return f"<details><summary>{text(title)}<small>{text(where + inexact)}</small></summary><div>{body}</div></details>"


def _mark(mark: Mark) -> str:
    reason = f": {mark.reason}" if mark.reason else ""
    return f'<li>{text(mark.parameter)} is <span class="mark">{mark.kind}</span>{text(reason)}</li>'


def errors(document: ReportDocument) -> str:
    """Failed cells with their tracebacks, folded, and what was never tried."""
    parts = []
    if document.errors:
        parts.append(f'<div class="card">{"".join(map(_error, document.errors))}</div>')
    if document.unsupported:
        rows = [[plain(item.config), plain(item.library), plain(item.reason)] for item in document.unsupported]
        table = grid(["Not supported", "Library", "Reason"], rows, kind="sortable")
        parts.append(f'<div class="card">{_scroll(table, "Not supported")}</div>')
    return "".join(parts)


def _error(item: Failure) -> str:
    who = item.library if item.variant is None else f"{item.library} {item.variant}"
    fold = "" if item.fold is None else f", fold {item.fold}"
    title = f"{item.config}, {who}, seed {item.seed}{fold}: {item.error_type}"
    detail = details_of(item)
    trace = f"<pre>{text(detail)}</pre>" if detail else ""
    return (
        f"<details><summary>{text(title)}<small>{text(item.phase)}</small></summary>"
        f"<div><p>{text(item.message)}</p>{trace}</div></details>"
    )


def environment(document: ReportDocument) -> str:
    """The only table that differs between two renderings of the same results."""
    rows = [[f'<th scope="row">{text(name)}</th>', plain(value)] for name, value in document.environment.rows()]
    return f'<div class="card">{_scroll(grid(["Property", "Value"], rows), "Environment")}</div>'


def reproduce(document: ReportDocument) -> str:
    """The commands that make it again."""
    if not document.reproduce:
        return ""
    return f'<div class="card"><pre>{text(chr(10).join(document.reproduce))}</pre></div>'


def _scroll(table: str, name: str) -> str:
    """A wide table moves inside its card, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{text(name)}">{table}</div>'


def _filter(name: str, targets: str, groups: str = "") -> str:
    """A search field that the script brings to life."""
    return (
        f'<div class="filter" hidden><input type="search" placeholder="{text(name)}" aria-label="{text(name)}" '
        f'data-targets="{text(targets)}" data-groups="{text(groups)}"><output aria-live="polite"></output></div>'
    )
