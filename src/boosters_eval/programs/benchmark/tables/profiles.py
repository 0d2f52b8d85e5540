"""One answer for a benchmark that was run in both profiles: by meaning, and with each library's own defaults."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import join_words, lower_initial
from boosters_eval.programs.benchmark.comparisons import compare_rows
from boosters_eval.programs.benchmark.records import OWN_DEFAULTS
from boosters_eval.programs.benchmark.tables.answers import tell_be
from boosters_eval.programs.benchmark.tables.verdicts import find_deciding
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boosters_eval.programs.benchmark.margins import Margins
    from boosters_eval.programs.benchmark.tables.answers import TableAnswer
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.reports.tables import Column, PairVerdict, ReportTable
    from boosters_eval.stats.significance import TestName

MEANT, _OWN = "mapped by meaning", "with each library's own defaults"
_MOST_TURNED = 2  # pairs; the tables show all


def name_better(
    meant: Sequence[Contender],
    own: Sequence[Contender],
    columns: Sequence[Column],
    *,
    test: TestName,
    alpha: float,
    margins: Margins,
) -> list[str]:
    """The libraries that are better with their own defaults than mapped by meaning, in the column that decides."""
    column = find_deciding(columns)
    if column is None or column.kind != "metric" or column.higher_is_better is None:
        return []
    twins = {contender.name: contender for contender in own if contender.results}
    pairs = [(contender, twins[contender.name]) for contender in meant if contender.name in twins and contender.results]
    found = []
    for first, second in pairs:
        rows = {MEANT: first.results, _OWN: second.results}
        how: Any = {"test": test, "alpha": alpha / len(pairs), "margins": margins, "evidence": first.evidence}
        judged = compare_rows(rows, column.name, higher_is_better=column.higher_is_better, **how)
        found += [first.name] if judged.get(_OWN, MEANT).verdict == "better" else []
    return found


def join_profiles(
    found: Mapping[str, tuple[ReportTable, TableAnswer]], better: Mapping[str, Sequence[str]]
) -> dict[str, TableAnswer]:
    """The answer of each benchmark, by its table; of one in both profiles, the first table has that of both.

    `better` names, by benchmark, who is better with its own defaults than mapped by meaning.
    """
    answers = {}
    for name, (table, answer) in found.items():
        if twin := found.get(f"{name}{OWN_DEFAULTS}"):
            answers[name] = _join((table, answer), twin, better.get(name, ()))
        elif not is_twin(table, found):
            answers[name] = answer
    return answers


def is_twin(table: ReportTable, names: Iterable[str]) -> bool:
    """Whether a table shows once more, with each library's own defaults, what another one of these shows by meaning."""
    name = table.name
    return name.endswith(OWN_DEFAULTS) and name.removesuffix(OWN_DEFAULTS) in names


def _join(
    meant: tuple[ReportTable, TableAnswer], own: tuple[ReportTable, TableAnswer], better: Sequence[str]
) -> TableAnswer:
    """Only who wins in both profiles is best; whatever turns round is said instead."""
    (table, first), (other, second) = meant, own
    gain = [f"Better with their own defaults than {MEANT}: {join_words(better)}"] if better else []
    rest = tuple(dict.fromkeys((*gain, *first.rest, *second.rest)))
    joined = dataclasses.replace(
        first,
        sure=_join_sure(first.sure, second.sure),
        rest=rest,
        doubts=tuple(dict.fromkeys((*first.doubts, *second.doubts))),
    )
    if first.winner != second.winner:
        which = f"nobody is best in both profiles. {MEANT.capitalize()}, {_tell(table, first)}"
        return dataclasses.replace(joined, which=f"{which}. {_OWN.capitalize()}, {_tell(other, second)}")
    if first.winner is not None:
        return dataclasses.replace(joined, which=f"{first.which}. {_OWN.capitalize()} too")
    turned = list(_find_turned(table, other))
    told = [f"{MEANT.capitalize()}, {a} is better than {b}, but {_OWN} it is worse" for a, b in turned[:_MOST_TURNED]]
    return dataclasses.replace(joined, rest=(*told, f"{_OWN.capitalize()}, {_tell(other, second)}", *rest))


def _join_sure(first: str, second: str) -> str:
    """How sure both are; what is true of both is told once."""
    (shared, _, meant), (other, _, own) = first.partition(". "), second.partition(". ")
    if shared != other:
        shared, meant, own = "", first, second
    apart = {MEANT: meant, _OWN: own}
    told = [shared, *(f"{how}, {lower_initial(said)}" for how, said in apart.items() if said)]
    return ". ".join(part[:1].upper() + part[1:] if place else part for place, part in enumerate(filter(None, told)))


def _tell(table: ReportTable, answer: TableAnswer) -> str:
    """Who is ahead or level, if that was shown, and the two best scores."""
    column, contest = find_deciding(table.columns), answer.contest
    if contest is not None and contest.lost:
        return contest.name_which().replace("none. Nothing", "nothing")
    said = "cannot say who is ahead" if answer.winner is None else f"{answer.winner} is ahead"
    if answer.winner is None and contest is not None and contest.level and not contest.open:
        said = f"{join_words(contest.chosen)} are as good"
    if contest is not None and contest.open and contest.behind:
        said += f", but {join_words(contest.behind)} {tell_be(contest.behind)} worse than {contest.leader}"
    if column is None:
        return said
    position = table.columns.index(column)
    scored = [(mean, row.label) for row in table.rows if (mean := row.cells[position].mean) is not None]
    first = sorted(scored, key=lambda one: (one[1] != answer.winner, one[0] * (-1 if column.higher_is_better else 1)))
    shown = ", ".join(f"{name} {number(mean, 3)}" for mean, name in first[:2])
    return f"{said} ({column.label}: {shown})" if shown else said


def _find_turned(meant: ReportTable, own: ReportTable) -> Iterator[tuple[str, str]]:
    """The pairs of which one is better by meaning, and the other one with its own defaults."""
    first, second = (dict(map(_order, _decided(table))) for table in (meant, own))
    for pair, better in first.items():
        if pair in second and second[pair] != better:
            yield better, next(iter(pair - {better}))


def _decided(table: ReportTable) -> Iterator[PairVerdict]:
    column = find_deciding(table.columns)
    for pair in table.pairs:
        if column is not None and pair.metric == column.name and pair.verdict in ("better", "worse"):
            yield pair


def _order(pair: PairVerdict) -> tuple[frozenset[str], str]:
    return frozenset((pair.a, pair.b)), pair.a if pair.verdict == "better" else pair.b
