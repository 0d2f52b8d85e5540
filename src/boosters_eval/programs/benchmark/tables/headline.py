"""The answer over all tables of a run, and how the libraries stand. Both only count existing verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, count_of, format_share, group_digits, join_words, lower_initial
from boosters_eval.programs.benchmark.records import OWN_DEFAULTS
from boosters_eval.programs.benchmark.tables.advice import Costs, advise
from boosters_eval.programs.benchmark.tables.answers import BUT, BY_DATASET, COST, NEXT, SURE, WHICH
from boosters_eval.programs.benchmark.tables.general import tell_hinges, tell_in_general
from boosters_eval.programs.benchmark.tables.profiles import MEANT, is_twin
from boosters_eval.programs.benchmark.tables.sections import select_audits
from boosters_eval.programs.benchmark.tables.verdicts import find_deciding
from boosters_eval.reports.document import PlainTable
from boosters_eval.reports.html.charts import contrast, leader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.tables.answers import TableAnswer
    from boosters_eval.reports.tables import RankingTable, ReportTable

_NAMED, _LIBRARIES = 3, 5  # data sets and libraries; more are only counted
_TITLE = 78  # characters, so that it is one line of a terminal
BEST, LEVEL, OPEN, BEHIND = "best", "as good as the best", "cannot say", "worse"
DEFAULTS = "library defaults"  # after the name of a table, too
SUSPECT = "suspect data"  # after the name of a table whose scores cannot be trusted
MIXED, LOST, ABSENT = "depends on the profile", "no better than a trivial rule", "no result"
_HEADINGS = {LOST: "No skill"}  # where the words themselves would make a column too narrow for them


def find_standings(table: ReportTable) -> dict[str, str]:
    """How each row stands in the column that decides; empty if none is judged.

    `best` is what is highlighted: better than every other row. The row with the best mean and those that were shown to
    be equivalent to it are as good as the best; what was shown to be neither that nor worse is open, and so is a leader
    without an equal. Those of them that are no better than a trivial rule have lost.
    """
    column = find_deciding(table.columns)
    position = None if column is None else table.columns.index(column)
    first = None if position is None else leader(table, position)
    if column is None or position is None or first is None:
        return {}
    pairs = [pair for pair in table.pairs if pair.metric == column.name and first in (pair.a, pair.b)]
    judged = {other.name: other.verdict for other in (contrast(pair, first, as_ratio=False) for pair in pairs)}
    standing = {"equivalent": LEVEL, "worse": BEHIND}
    found = {}
    for row in table.rows:
        cell, own = row.cells[position], LEVEL if "equivalent" in judged.values() else OPEN
        level = own if row.label == first else standing.get(judged.get(row.label, ""), OPEN)
        level = LOST if row.label in table.unbeaten and level != BEHIND else level
        found[row.label] = ABSENT if cell.mean is None else BEST if cell.best else level
    return found


def find_all_standings(tables: Sequence[ReportTable]) -> dict[str, dict[str, str]]:
    """The standings of each benchmark; of one in both profiles, who stands differently in them is told apart."""
    names = [table.name for table in tables]
    found: dict[str, dict[str, str]] = {}
    for table in tables:
        standings = find_standings(table)
        name = table.name.removesuffix(OWN_DEFAULTS) if is_twin(table, names) else table.name
        seen = found.setdefault(name, standings)
        found[name] = {who: MIXED if seen.get(who, how) != how else how for who, how in standings.items()}
    return found


def find_leaks(results: ResultCollection) -> tuple[str, ...]:
    """The data sets in which a column gives the target away: a library that is best there has shown nothing."""
    audits = select_audits(results)
    return tuple(
        clean(name) for name, audit in audits.items() if any(finding.kind == "leak" for finding in audit.findings)
    )


def name_comparison(tables: Sequence[ReportTable], results: ResultCollection) -> str:
    """What was compared: the competitors and the data sets, or how many of each there are; nothing if nothing was."""
    rows = dict.fromkeys(row.label for table in tables for row in table.rows)
    datasets = dict.fromkeys(table.keys["dataset"] for table in tables)
    if not rows:
        return ""
    kind = "libraries" if all(len(table.row_names) == 1 for table in tables) else "competitors"
    counted = f"{len(rows)} {kind}"
    where = join_words(datasets) if len(datasets) <= _NAMED else f"{len(datasets)} data sets"
    suite = f"{clean(results.suite)} suite: " if results.suite not in (None, "compare") else ""
    named = f"{suite}{join_words(rows)} on {where}"
    return named if len(rows) <= _LIBRARIES and len(named) <= _TITLE else f"{suite}{counted} on {where}"


def shorten_names(tables: Sequence[ReportTable]) -> dict[str, str]:
    """The name of each table's data set, unless two tables share one; of both profiles, with which one it is."""
    names = {table.name for table in tables}
    twins = {table.name for table in tables if is_twin(table, names)}
    counted = Counter(table.keys["dataset"] for table in tables if table.name not in twins)
    short = {
        t.name: t.name.removesuffix(OWN_DEFAULTS) if counted[t.keys["dataset"]] > 1 else t.keys["dataset"]
        for t in tables
    }
    meant = {name: MEANT for name in short if f"{name}{OWN_DEFAULTS}" in twins}
    profiles = {**meant, **dict.fromkeys(twins, DEFAULTS)}
    return {name: f"{said}, {profiles[name]}" if name in profiles else said for name, said in short.items()}


def answer_run(
    tables: Sequence[ReportTable],
    answers: Mapping[str, TableAnswer],
    costs: Mapping[str, Costs],
    rankings: Sequence[RankingTable],
    results: ResultCollection,
    *,
    alpha: float,
) -> tuple[str, ...]:
    """At most six lines. Of one table its own, of two both, of more what they say together."""
    if not tables:
        return ("No cell finished, so there is no answer.",)
    short = shorten_names([table for table in tables if table.name in answers])
    step = advise(results, {short[name]: one for name, one in answers.items()})
    following = [f"{NEXT}: {step}"] if step else []
    reserved = list(_list_rescored(results, alpha))
    if len(answers) == 1:
        which, *lines = answers[tables[0].name].lines
        return (which, *(f"{BUT}: {clean('; '.join(reserved))}." for _ in reserved[:1]), *lines, *following)
    judged = {short[name]: one for name, one in costs.items() if one.times}
    cost = Costs.average(judged).tell() if len(judged) == len(answers) else ""
    two = len(answers) == 2
    lines = list(_answer_two(answers, short) if two else _answer_many(tables, answers, rankings, results, alpha))
    reserved += _list_reservations(answers, short, find_leaks(results), results) if not two else ()
    lines += [f"{BUT}: {'; '.join(reserved)}."] if reserved else []
    return (*map(clean, lines), *([f"{COST}: {cost}"] if cost else []), *following)


def _answer_two(answers: Mapping[str, TableAnswer], short: Mapping[str, str]) -> Iterator[str]:
    """Both answers; what is true of both data sets is told once."""
    said: dict[str, list[str]] = {}
    first, last = (one.rest for one in answers.values())
    rests = [
        tuple(part for part in first if part not in last),
        tuple(f"On both, {lower_initial(part)}" if part in first else part for part in last),
    ]
    same = len({one.whole for one in answers.values()}) == 1 and not any(one.contest for one in answers.values())
    if same:
        yield f"{WHICH}, on {join_words(short.values())}: {next(iter(answers.values())).whole}"
    for (name, one), rest in zip(answers.items(), rests, strict=True):
        if not same:
            yield f"{WHICH}, on {short[name]}: {replace(one, rest=rest).whole}"
        if one.confidence:
            said.setdefault(one.confidence, []).append(short[name])
    apart = len(said) > 1 or any(len(names) < len(answers) for names in said.values())
    if said:
        told = (f"on {join_words(names)}, {text}" if apart else text for text, names in said.items())
        yield f"{SURE}: {' '.join(part[:1].upper() + part[1:] if place else part for place, part in enumerate(told))}"


def _answer_many(
    tables: Sequence[ReportTable],
    answers: Mapping[str, TableAnswer],
    rankings: Sequence[RankingTable],
    results: ResultCollection,
    alpha: float,
) -> Iterator[str]:
    short, leaks = shorten_names([table for table in tables if table.name in answers]), find_leaks(results)
    counted = [table for table in tables if table.keys["dataset"] not in leaks]
    judged = {short[name]: found for name, found in find_all_standings(counted).items() if len(found) > 1}
    counted_up = _count(judged) if judged else "no answer: nothing is judged here"
    general = tell_in_general(rankings[0]) if len(rankings) == 1 else ""
    if general:
        yield f"{WHICH}: {general}."
    yield f"{BY_DATASET if general else WHICH}: {counted_up}."
    told = [ranking for ranking in rankings if not (general and ranking.descriptive)]  # which says that much itself
    ranked = [_tell_rank(ranking, alpha, named=len(rankings) > 1) for ranking in told]
    ranked += [hinges] if general and (hinges := tell_hinges(rankings[0])) else []
    decided = any({BEST, LEVEL, BEHIND} & set(found.values()) for found in judged.values())
    sure = f"{format_share(1 - alpha)} sure of each answer given" if decided else "not sure of any order"
    yield f"{SURE}: {'. '.join([sure, *ranked])}."


def _count(judged: Mapping[str, Mapping[str, str]]) -> str:
    """How often each was shown to be the best, or as good; and where nobody was."""
    tally = _tally(judged.values())
    good = {name: (found[BEST] + found[LEVEL], found[BEST]) for name, found in tally.items()}
    decided = {BEST, LEVEL, LOST, MIXED}
    open_ = [name for name, found in judged.items() if not decided & set(found.values())]
    total = count_of(len(judged), "data set")
    behind = {name: found[BEHIND] for name, found in tally.items() if found[BEHIND]}
    lagging = [f"{name} on {n}" for name, n in sorted(behind.items(), key=lambda item: -item[1])]
    worse = f". Shown to be worse: {', '.join(lagging)}" if lagging else ""
    most = max(good.values())
    if most == (0, 0):
        where = f"on any of the {total}" if len(open_) == len(judged) else f"on {len(open_)} of {total}"
        said = f"cannot say {where}" if open_ else "none"
        mixed = sum(MIXED in found.values() for found in judged.values())
        turned = f". It depends on the profile on {mixed}" if mixed else ""
        return f"{said}: no library is shown to be the best, or as good as the best{turned}{worse}"
    first = [name for name, counts in good.items() if counts == most]
    others = sorted(
        (name for name in good if name not in first and good[name][0]), key=lambda name: good[name], reverse=True
    )
    text, each = join_words(first), ", each" if len(first) > 1 else ","
    if 0 < most[1] < most[0]:
        text += f"{each} on {most[0]} of {total} ({BEST} on {most[1]}, {LEVEL} on {most[0] - most[1]})"
    else:
        text += f"{each} {BEST if most[1] else LEVEL} on {most[0]} of {total}"
    text += f". Then {', '.join(f'{name} on {good[name][0]}' for name in others)}" if others else ""
    where = join_words(open_, most=_NAMED)
    return f"{text}{worse}" + (f". Cannot say on {len(open_)} ({where})" if open_ else "")


def _tally(judged: Iterable[Mapping[str, str]]) -> dict[str, Counter[str]]:
    tally: dict[str, Counter[str]] = {}
    for found in judged:
        for name, standing in found.items():
            tally.setdefault(name, Counter())[standing] += 1
    return tally


def _tell_rank(ranking: RankingTable, alpha: float, *, named: bool) -> str:
    name = f" ({ranking.name})" if named else ""
    over = f"over {ranking.n} {ranking.over}{name}"
    if ranking.descriptive:
        return f"{ranking.n} {ranking.over} are too few to say who is better in general{name}"
    (first, best), *others = ranking.ranks
    level = [name for name, _ in others if not _separated(ranking, first, name, alpha)]
    if not level:
        return f"By average rank {over}, {first} ({best:.2f}) is ahead of all others"
    if len(level) == len(others):
        return f"By average rank {over}, no library is shown to be ahead"
    return f"By average rank {over}, {first} ({best:.2f}) is ahead of all others but {join_words(level)}"


def _list_rescored(results: ResultCollection, alpha: float) -> Iterator[str]:
    """That other metrics were asked for after the run, and where none of them could be computed."""
    words = results.metadata.rescored
    if words:
        asked = 1 + len(set(words[1:] if "--margin" not in words else words[1 : words.index("--margin")]))
        risk = format_share(asked * alpha)
        family = f"with what was asked after the run, {asked} questions share a risk of {risk}"
        yield f"{family}: each is judged more strictly"
    if left := results.metadata.left_out:
        yield f"left out, because no metric that was asked for can be computed there: {join_words(left, most=_NAMED)}"


def _list_reservations(
    answers: Mapping[str, TableAnswer], short: Mapping[str, str], leaks: Collection[str], results: ResultCollection
) -> Iterator[str]:
    """What changes the answer: data that mislead, rules that are as good, and what failed or is missing."""
    suspect = {short[name]: one.suspicion for name, one in answers.items() if one.suspicion}
    if len(suspect) <= _NAMED:
        yield from (f"{name}: {reason}{' (not counted)' if name in leaks else ''}" for name, reason in suspect.items())
    else:
        yield f"the data are suspect on {len(suspect)} data sets ({join_words(suspect, most=_NAMED)})"
    lost = [short[name] for name, one in answers.items() if one.contest is not None and one.contest.lost]
    if lost:
        yield f"on {join_words(lost, most=_NAMED)} even the best is no better than a trivial rule"
    if results.errors:
        total = len(results.errors) + len(results.results)
        by = Counter(error.library for error in results.errors).most_common()
        whose = join_words(f"{name} {n}" for name, n in by)
        yield f"{count_of(len(results.errors), 'cell')} of {group_digits(total)} failed ({whose})"
    if missing := results.metadata.n_missing:
        yield f"the run is incomplete: {count_of(missing, 'cell')} {'has' if missing == 1 else 'have'} no outcome"
    for word, absences in (("not supported", results.unsupported), ("unavailable", results.unavailable)):
        for name, n in Counter(item.library for item in absences).items():
            yield f"{name} is {word} on {count_of(n, 'data set')}"
    doubted: dict[str, list[str]] = {}
    for name, one in answers.items():
        for doubt in one.doubts:
            doubted.setdefault(doubt.kind, []).append(short[name])
    yield from (f"{doubt} on {join_words(names, most=_NAMED)}" for doubt, names in doubted.items())


def build_leaderboard(
    tables: Sequence[ReportTable], rankings: Sequence[RankingTable], *, alpha: float, leaks: Collection[str] = ()
) -> PlainTable | None:
    """On how many data sets each competitor is best, as good as the best, open or behind; and its average rank."""
    counted = [table for table in tables if table.keys["dataset"] not in leaks]
    every = find_all_standings(counted)
    judged = [found for found in every.values() if len(found) > 1]
    if not judged or len(find_all_standings(tables)) == 1:  # whose own table says it all
        return None
    tally = _tally(judged)
    failed = Counter(dict.fromkeys(tally, 0))
    for table in tables:
        failed.update({row.label: row.failed for row in table.rows})
    ranked = [dict(ranking.ranks) for ranking in rankings]
    lone = ranked[0] if len(ranked) == 1 else {}
    order = sorted(tally, key=lambda name: (lone.get(name, len(tally)), -tally[name][BEST], tally[name][BEHIND], name))
    rare = [standing for standing in (MIXED, LOST, ABSENT) if any(found[standing] for found in tally.values())]
    standings = [BEST, LEVEL, OPEN, BEHIND, *rare]
    shown_failures = any(failed.values())
    rows = tuple(
        (
            name,
            *(_rank(ranking, name, alpha) for ranking in rankings),
            *(tally[name][standing] for standing in standings),
            *((failed[name],) if shown_failures else ()),
        )
        for name in order
    )
    without = [table.keys["dataset"] for table in tables if table not in counted]
    whole = [ranking.n for ranking in rankings] == [len(every)]
    left = f", without {join_words(without)} (a leak)" if without else ""
    return PlainTable(
        name=f"Leaderboard over {count_of(len(judged), 'data set')}{left}",
        headings=(
            " ".join(dict.fromkeys(name for table in tables for name in table.row_names)),
            *(f"Average rank{'' if whole else f' ({ranking.name})'} ↓" for ranking in rankings),
            *(_HEADINGS.get(standing, standing.capitalize()) for standing in standings),
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
