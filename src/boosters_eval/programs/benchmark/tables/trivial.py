"""The trivial rows of a table, and which of its rows are not better than they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import clean
from boosters_eval.programs.benchmark.comparisons import TrivialScore, find_unbeaten
from boosters_eval.programs.benchmark.records import RULES
from boosters_eval.reports.numbers import estimate, mean_and_std
from boosters_eval.reports.tables import Row, TableCell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.core.request import Repeat
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.reports.tables import Column

# By metric, and by the name of a row: the rule that the row is not better than.
Losers = dict[str, dict[str, TrivialScore]]


def rows(contenders: Sequence[Contender], columns: Sequence[Column], row_names: tuple[str, ...]) -> tuple[Row, ...]:
    """One row per rule, below the libraries; none where no column is a metric, as in a table of times."""
    scores: dict[str, dict[Repeat, Mapping[str, float]]] = {}
    for contender in contenders:
        for result in contender.results:
            for rule, found in (result.trivial or {}).items():
                scores.setdefault(rule, {}).setdefault(result.repeat, found)
    blank = ("",) * (len(row_names) - 1)
    made = [
        Row(
            names=(clean(RULES.get(rule, (rule,))[-1]), *blank),
            cells=tuple(_cell([found.get(column.name) for found in splits.values()]) for column in columns),
            n=len(splits),
            points=tuple(map(str, splits)),
        )
        for rule, splits in scores.items()
    ]
    return tuple(row for row in made if any(cell.n for cell in row.cells))


def _cell(aligned: list[float | None]) -> TableCell:
    values = [value for value in aligned if value is not None]
    mean, std = mean_and_std(values)
    text = estimate(mean, std)
    if values and len(values) != len(aligned):
        text += f" (n = {len(values)})"
    return TableCell(mean=mean, std=std, n=len(values), text=text, values=tuple(aligned))


def losers(contenders: Sequence[Contender], columns: Sequence[Column]) -> Losers:
    """The rows that are not better than the best trivial rule, in each metric with a known direction."""
    found: Losers = {}
    for column in columns:
        if column.higher_is_better is None:
            continue
        for contender in contenders:
            rule = find_unbeaten(contender.results, column.name, higher_is_better=column.higher_is_better)
            if rule is not None:
                found.setdefault(column.name, {})[contender.name] = rule
    return found


def notes(found: Losers, columns: Sequence[Column], contenders: Sequence[Contender]) -> list[str]:
    """One sentence for each metric in which a library is not better than a rule that takes no skill."""
    out = []
    for column in columns:
        losing = found.get(column.name, {})
        if not losing:
            continue
        scored = {contender.name for contender in contenders if contender.values(column)}
        everyone = len(scored) > 1 and scored <= losing.keys()
        who = "no library is" if everyone else f"{', '.join(losing)} {'is' if len(losing) == 1 else 'are'} not"
        out.append(f"{column.label}: {who} better than {next(iter(losing.values())).text}.")
    return out
