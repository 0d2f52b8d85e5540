"""The answer over all benchmarks: one headline, and how the libraries stand. Both only count existing verdicts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, count_of, group_digits, join_words
from boosters_eval.programs.benchmark.tables.contenders import find_losers, group_results
from boosters_eval.programs.benchmark.tables.sections import tell_suspicions
from boosters_eval.programs.benchmark.tables.verdicts import find_deciding
from boosters_eval.reports.document import PlainTable
from boosters_eval.reports.html.charts import contrast, leader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.reports.tables import RankingTable, ReportTable

_NAMED = 3  # benchmarks; more are only counted
BEST, LEADING, BEHIND, ABSENT = "best", "leading", "behind", "absent"


def find_standings(table: ReportTable) -> dict[str, str]:
    """How each row stands in the column that decides; empty if none is judged.

    `best` is what is highlighted: better than every other row. `leading` is the row with the best mean, and those that
    were not shown to be worse than it; the others are `behind`. A row without a value is `absent`.
    """
    position = _deciding(table)
    first = None if position is None else leader(table, position)
    if position is None or first is None:
        return {}
    metric = table.columns[position].name
    judged = [contrast(p, first, as_ratio=False) for p in table.pairs if p.metric == metric and first in (p.a, p.b)]
    worse = {other.name for other in judged if other.verdict == "worse"}
    found = {}
    for row in table.rows:
        cell = row.cells[position]
        level = BEHIND if row.label in worse else LEADING
        found[row.label] = ABSENT if cell.mean is None else BEST if cell.best else level
    return found


def _deciding(table: ReportTable) -> int | None:
    column = find_deciding(table.columns)
    return None if column is None else table.columns.index(column)


def write_headline(
    tables: Sequence[ReportTable], rankings: Iterable[RankingTable], results: ResultCollection, *, alpha: float
) -> tuple[str, ...]:
    """Who is best, or that nobody can be told apart; what the ranks say; and what is missing."""
    if not tables:
        return ("No cell finished, so there is no answer.",)
    if len(tables) == 1:
        return (tables[0].answer,)  # which says what is missing, too
    lost = _find_lost(tables, results)
    where = join_words(lost) if len(lost) <= _NAMED else count_of(len(lost), "benchmark")
    found = (
        _verdict(tables, lost),
        *(_ranked(ranking, alpha) for ranking in rankings),
        f"On {where} no library is better than a trivial prediction." if lost else "",
        *_suspicions(results),
        *_gaps(results),
    )
    return tuple(clean(sentence) for sentence in found if sentence)


def _find_lost(tables: Sequence[ReportTable], results: ResultCollection) -> list[str]:
    """The benchmarks in which every library with a value is no better than a prediction that takes no skill."""
    groups = {clean(name): list(rows.values()) for name, rows in group_results(results).items()}
    lost = []
    for table in tables:
        column = find_deciding(table.columns)
        found = {name for name, standing in find_standings(table).items() if standing != ABSENT}
        losers = find_losers(groups[table.name], [column]) if column is not None else {}
        if column is not None and found and found <= losers.get(column.name, {}).keys():
            lost.append(table.name)
    return lost


def _verdict(tables: Sequence[ReportTable], lost: Sequence[str]) -> str:
    judged = {table.name: found for table in tables if len(found := find_standings(table)) > 1}
    unjudged = len(tables) - len(judged)
    if not judged:
        return "Nothing is judged here: there is no second library, or no measure that may be compared."
    wins = Counter(name for found in judged.values() for name, standing in found.items() if standing == BEST)
    open_ = [name for name, found in judged.items() if BEST not in found.values()]
    rest = f" {count_of(unjudged, 'benchmark')} {'is' if unjudged == 1 else 'are'} not judged." if unjudged else ""
    of = f" of {len(judged)}" if len(judged) > 1 else ""
    if not wins:
        where = "any benchmark" if len(judged) > 1 else next(iter(judged))
        left = [table for table in tables if table.name in judged and table.name not in lost]  # another sentence tells
        return f"No library is clearly best on {where}{_apart(left, judged)}.{rest}"
    (first, n), *others = wins.most_common()
    parts = [f"{first} is best on {n}{of} benchmark{'' if max(len(judged), n) == 1 else 's'}"]
    parts += [f"{name} on {n}" for name, n in others]
    undecided = f"; on {len(open_)} no library is clearly best" if open_ else ""
    return f"{', '.join(parts)}{undecided}.{rest}"


def _apart(tables: Sequence[ReportTable], judged: Mapping[str, Mapping[str, str]]) -> str:
    """Whether nobody can be told apart at all, or only the leaders cannot."""
    if not tables:
        return ""
    if any(BEHIND in judged[table.name].values() for table in tables):
        return ": the leaders cannot be told apart, though some libraries are behind"
    deciding = {table.name: column for table in tables if (column := find_deciding(table.columns))}
    if any(
        pair.verdict in ("better", "worse") and pair.metric == deciding[table.name].name
        for table in tables
        if table.name in deciding
        for pair in table.pairs
    ):
        return ": the leaders cannot be told apart, though some of the others can"
    return ": the libraries cannot be told apart"


def _ranked(ranking: RankingTable, alpha: float) -> str:
    over = f"over {ranking.n} {ranking.over} ({ranking.name})"
    if ranking.descriptive:
        return f"The average ranks {over} are descriptive only: there are too few to test."
    (first, best), *others = ranking.ranks
    level = [name for name, _ in others if not _separated(ranking, first, name, alpha)]
    if not level:
        return f"{first} has the best average rank {over}, {best:.2f}, and is separated from all others."
    if len(level) == len(others):
        return f"By average rank {over} no library is separated from the best."
    return f"{first} has the best average rank {over}, {best:.2f}, but is not separated from {join_words(level)}."


def _suspicions(results: ResultCollection) -> list[str]:
    """Why scores cannot be trusted, by data set; of many, only how many there are."""
    found = tell_suspicions(results)
    if len(found) <= _NAMED:
        return [f"{name}: {reason}." for name, reason in found.items()]
    return [f"The data of {len(found)} data sets are suspect (see the notes)."]


def _gaps(results: ResultCollection) -> list[str]:
    """What failed or is missing: an answer must not look whole without it."""
    out = []
    if results.errors:
        total = len(results.errors) + len(results.results)
        by = Counter(error.library for error in results.errors).most_common()
        whose = join_words(f"{name} {n}" for name, n in by)
        out.append(f"{count_of(len(results.errors), 'cell')} of {group_digits(total)} failed ({whose}).")
    if missing := results.metadata.n_missing:
        out.append(
            f"The run is incomplete: {count_of(missing, 'cell')} {'has' if missing == 1 else 'have'} no outcome."
        )
    for word, absences in (("not supported", results.unsupported), ("unavailable", results.unavailable)):
        for name, n in Counter(item.library for item in absences).items():
            out.append(f"{name} is {word} in {count_of(n, 'benchmark')}.")
    return out


def build_leaderboard(
    tables: Sequence[ReportTable], rankings: Sequence[RankingTable], *, alpha: float
) -> PlainTable | None:
    """In how many benchmarks each competitor is best, level with the best, or behind; and its average rank."""
    judged = [found for table in tables if len(found := find_standings(table)) > 1]
    if not judged or len(tables) == 1:  # whose own table says it all
        return None
    tally: dict[str, Counter[str]] = {}
    for found in judged:
        for name, standing in found.items():
            tally.setdefault(name, Counter())[standing] += 1
    failed = Counter(dict.fromkeys(tally, 0))
    for table in tables:
        failed.update({row.label: row.failed for row in table.rows})
    ranked = [dict(ranking.ranks) for ranking in rankings]
    lone = ranked[0] if len(ranked) == 1 else {}
    order = sorted(tally, key=lambda name: (lone.get(name, len(tally)), -tally[name][BEST], tally[name][BEHIND], name))
    counted = [BEST, LEADING, BEHIND, *([ABSENT] if any(found[ABSENT] for found in tally.values()) else [])]
    headings = {BEST: "Best", LEADING: "Not told apart from the best", BEHIND: "Behind", ABSENT: "No result"}
    shown_failures = any(failed.values())
    rows = tuple(
        (
            name,
            *(_rank(ranking, name, alpha) for ranking in rankings),
            *(tally[name][standing] for standing in counted),
            *((failed[name],) if shown_failures else ()),
        )
        for name in order
    )
    return PlainTable(
        name=f"Leaderboard over {count_of(len(judged), 'benchmark')}",
        headings=(
            " ".join(dict.fromkeys(name for table in tables for name in table.row_names)),
            *(f"Average rank ({ranking.name})" for ranking in rankings),
            *(headings[standing] for standing in counted),
            *(("Failed cells",) if shown_failures else ()),
        ),
        rows=rows,
    )


def _rank(ranking: RankingTable, name: str, alpha: float) -> str | None:
    ranks = dict(ranking.ranks)
    if name not in ranks:
        return None
    tied = ", tied" if sum(rank == ranks[name] for rank in ranks.values()) > 1 else ""
    first = ranking.ranks[0][0]
    if ranking.descriptive or name == first or _separated(ranking, first, name, alpha):
        return f"{ranks[name]:.2f}{tied}"
    return f"{ranks[name]:.2f}{tied}, not separable from the best"


def _separated(ranking: RankingTable, a: str, b: str, alpha: float) -> bool:
    return any({pair.a, pair.b} == {a, b} and pair.p is not None and pair.p <= alpha for pair in ranking.pairs)
