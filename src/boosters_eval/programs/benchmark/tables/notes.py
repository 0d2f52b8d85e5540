"""The notes below the tables, in whole sentences."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from boosters_eval.core.terms import named
from boosters_eval.core.text import clean, count_of, format_share, group_digits, join_words
from boosters_eval.metrics import find
from boosters_eval.metrics.catalog import LOG_LOSSES, OF_MACHINE, resolve
from boosters_eval.programs.benchmark.tables.answers import OUTWEIGHED, Doubt
from boosters_eval.programs.benchmark.tables.contenders import note_losers
from boosters_eval.programs.benchmark.tables.environment import count_shares, list_builds
from boosters_eval.programs.benchmark.tables.sections import note_findings
from boosters_eval.programs.benchmark.tables.verdicts import SECONDARY_SHARE, find_scale
from boosters_eval.reports.numbers import p_value, percent
from boosters_eval.runners.result import BUSY_CELL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boosters_eval.programs.benchmark.margins import Margins
    from boosters_eval.programs.benchmark.records import Absence, BenchmarkError
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.tables.contenders import Contender, Losers, Places
    from boosters_eval.reports.tables import Column, PairVerdict, ReportTable
    from boosters_eval.runners.result import BenchmarkResult
    from boosters_eval.stats.significance import TestName

_LEAVES_UNLIKE = 1.5  # times the leaves of the others, from which on a mapping changes an answer
_LEAVES_APART = 0.10  # the relative difference in leaves that is worth a note
_SHOWN = 12  # distinct findings; further ones are only counted
_MACHINES = 4  # in a note; the environment names all
_SHORTEST = 80  # characters of an error in an answer
_LONGEST = 300  # characters of an error in a note; the report has it whole
_FEW_ROWS = 100  # test rows below which the differences in log loss may be too skewed for their p-values
_OUTWEIGHS = 0.8  # of a mean over targets: the share from which one of them decides it
_SURE = 0.1  # of alpha: a p-value below this share of it stands even then


def note_table(
    contenders: Sequence[Contender],
    columns: Sequence[Column],
    pairs: Sequence[PairVerdict],
    losers: Losers,
    places: Places,
    test: TestName,
) -> tuple[str, ...]:
    """Failures, who is not better than a trivial rule, unequal capacity, and the verdicts on the primary metric."""
    primary = [column.name for column in columns if column.primary]
    judged = [pair for pair in pairs if pair.metric in primary]
    lacks = _find_lacks(contenders, pairs) if test == "rows" else {}
    found = (
        *_skewed(contenders, pairs),  # the answer refers to it, so it must be among the first
        *(tell_failure(one.name, one.errors, len(one.results)) for one in contenders if one.errors),
        *_machines_apart(places, columns),
        *(f"{name}: {reason}." for name, reason in _unverified(contenders).items()),
        *_targets(columns),
        *note_losers(losers, columns, contenders),
        *_capacity(contenders),
        *_decided(judged),
        *_undecided(judged, next((column.of_error for column in columns if column.primary), "")),
        *(f"{join_words(labels)}: {lack}." for lack, labels in lacks.items()),
        *_period(contenders, pairs),
    )
    return tuple(map(clean, found))


def _targets(columns: Sequence[Column]) -> list[str]:
    """Of several targets: that scores are their means."""
    known = [(metric, column) for column in columns if (metric := find(column.name)) is not None]
    parts = [metric.target for metric, _ in known if metric.target]
    wholes = [column.label for metric, column in known if not metric.target]
    return [f"{join_words(wholes)} are means over {len(parts)} targets, {join_words(parts)}."] if parts else []


def _outweighed(contenders: Sequence[Contender], columns: Sequence[Column]) -> Iterator[Doubt]:
    """Of several targets, the one that makes up nearly all of what decides."""
    targets = {column: metric.target for column in columns if (metric := find(column.name)) is not None}
    parts = {column: target for column, target in targets.items() if target}
    primary = next((column for column in columns if column.primary), None)
    if primary is None or not parts or primary.higher_is_better or primary.best:
        return
    sums = {target: math.fsum(v for one in contenders for v in one.values(column)) for column, target in parts.items()}
    most, total = max(sums, key=sums.__getitem__), math.fsum(sums.values())
    if total > 0 and sums[most] > _OUTWEIGHS * total:
        share = format_share(sums[most] / total, 0)
        yield Doubt(f"The target {most} decides alone: it makes up {share} of the {primary.label}", OUTWEIGHED)


def _find_lacks(contenders: Sequence[Contender], pairs: Sequence[PairVerdict]) -> dict[str, list[str]]:
    """Which columns splits have decided, though a run is judged by rows, by the reason."""
    labels = {pair.metric: pair.label for pair in pairs if pair.test == "corrected" and pair.p is not None}
    results = [result for one in contenders for result in one.results]
    told: dict[str, list[str]] = {}
    if contenders[0].evidence is not None:
        for metric, label in labels.items():
            told.setdefault(contenders[0].evidence.tell_lack(results, metric), []).append(label)
    return {lack: names for lack, names in told.items() if lack}


def list_doubts(
    contenders: Sequence[Contender], columns: Sequence[Column], pairs: Sequence[PairVerdict], test: TestName
) -> Iterator[Doubt]:
    """What belongs into the answer of a table: cells that failed at first, and doubts about the verdicts."""
    yield from _outweighed(contenders, columns)
    cells = sum(bool(result.failed_before) for contender in contenders for result in contender.results)
    if cells:
        yield Doubt(f"{count_of(cells, 'cell')} finished only after failing", "some cells finished only after failing")
    if _skewed(contenders, pairs):
        yield Doubt("A few test rows may have decided it", "a few test rows may have decided")
    if unverified := clean(join_words(_unverified(contenders))):
        text = f"This version of {unverified} was never checked: its settings may not mean what was asked for"
        yield Doubt(text, f"the version of {unverified} was never checked")
    yield from _unlike(contenders)
    for lack in map(clean, _find_lacks(contenders, pairs) if test == "rows" else ()):
        yield Doubt(lack[:1].upper() + lack[1:], lack)


def _unlike(contenders: Sequence[Contender]) -> Iterator[Doubt]:
    """A mapping that is only approximated matters where it gives models of quite another size."""
    marked = [one.name for one in contenders if any(m.kind == "approximated" for r in one.results for m in r.marks)]
    leaves = _means(contenders, "n_leaves_total")
    others = [count for name, count in leaves.items() if name not in marked]
    for name in marked:
        share = leaves[name] / (sum(others) / len(others)) if name in leaves and others else 1.0
        if not 1 / _LEAVES_UNLIKE < share < _LEAVES_UNLIKE:
            times = f"{share:.1f} times" if share > 1 else percent(share, sign=False) + " of"
            size = "larger" if share > 1 else "smaller"
            told = f"{clean(name)} grows {size} trees than the others ({times} their leaves)"
            yield Doubt(f"{told}, as it has no setting like theirs", f"{clean(name)} grows much {size} trees")
            return


def _unverified(contenders: Sequence[Contender]) -> dict[str, str]:
    """The competitors whose version the mapping of parameters was never verified for, and how that is told."""
    return {
        contender.name: mark.reason
        for contender in contenders
        for result in contender.results
        for mark in result.marks
        if mark.parameter == "version"
    }


def note_report(collection: ResultCollection, *, times: bool) -> tuple[str, ...]:
    """Notes that apply to more than one table."""
    out = note_findings(collection)
    out += collection.metadata.remarks
    out += _machines(collection, times=times)  # early, since a terminal may show only the first
    out += _unavailable(collection.unavailable)
    out += [f"{item.config_name}: {item.library} is not supported ({item.reason})." for item in collection.unsupported]
    if missing := collection.metadata.n_missing:
        out.append(f"The run is incomplete: {missing} of {collection.metadata.n_cells} cells have no outcome.")
    if later := collection.metadata.unfinished_attempt:
        out.append(f"Attempt {later} of the run is unfinished; this is attempt {collection.metadata.attempt}.")
    out += [*_flaky(collection.flaky), *_taken(collection.results)]
    if killed := sum(result.killed_before > 0 for result in collection.results):
        were = "cell was" if killed == 1 else "cells were"
        out.append(f"{group_digits(killed)} {were} killed from outside and ran again, which says nothing of a library.")
    out += [
        f"{clean(name)} has dependencies of its own, so it differs from the others by more than the library."
        for name, build in list_builds(collection).items()
        if build.packages
    ]
    out += _tally(
        ((r.library, r.nondeterministic) for r in collection.results if r.nondeterministic),
        "{library} is not deterministic: {text}",
    )
    warnings = ((r.library, w) for r in collection.results for w in r.warnings if not w.startswith(BUSY_CELL))
    out += _tally(warnings, "{library}: {text}")
    if rule := collection.metadata.seeds_rule:
        out.append(f"{rule[:1].upper() + rule[1:].rstrip('.')}.")
    if left_out := collection.n_left_out:
        out.append(f"{left_out} of the run's {collection.metadata.n_cells} outcomes are left out here.")
    if any(result.profile == "defaults" for result in collection.results):
        out.append(
            "Profile 'defaults': each library has its own defaults, so models of unlike size and step are compared."
        )
    if times and any(r.train_time_s is not None and not r.timing_mode for r in collection.results):
        out.append(f"Times are only a rough guide, and not judged: use {named('timing_mode')} to compare them fairly.")
    if times:
        out += [item.note for item in collection.metadata.facts.disturbed]
    busy = [r.cpu_taken or 0.0 for r in collection.results if r.timing_mode and not r.fairly_timed]
    if times and busy:
        out.append(
            f"Times are indicative only: the machine was busy in {len(busy)} of {len(collection.results)} cells; other"
            f" programs used up to {percent(max(busy), sign=False)} of their CPUs. Repeat the run on an idle machine."
        )
    out += _marks(collection)
    return tuple(map(clean, out))


def note_levels(tables: Sequence[ReportTable], alpha: float, margins: Margins) -> tuple[str, ...]:
    """What counts as equivalent; and which columns decide, unless all are judged alike."""
    level = {pair.metric for table in tables for pair in table.pairs if pair.verdict == "equivalent"}
    found = (f"As good, or equivalent, is what differs by little: {margins.tell(level)}.",) if level else ()
    shown = [table for table in tables if any(cell.best for row in table.rows for cell in row.cells)]
    levels = {(pair.label, pair.alpha) for table in shown for pair in table.pairs}
    deciding = sorted({label for label, level in levels if level == alpha})
    if len(deciding) == len({label for label, _ in levels}):
        return found
    text = (
        f"Chance alone highlights a winner in {join_words(deciding)} in at most {100 * alpha:g} % of tables, and one in"
        f" any other column in {100 * SECONDARY_SHARE * alpha:g} %."
    )
    return (*found, clean(text))


def _machines(collection: ResultCollection, *, times: bool) -> list[str]:
    shares = count_shares(collection)
    if not shares:
        return []
    told = ", ".join(f"{share.in_words} ({count_of(share.cells, 'cell')})" for share in shares[:_MACHINES])
    told += f" and {len(shares) - _MACHINES} more" if len(shares) > _MACHINES else ""
    told += ". Times and memory are compared within one machine only" if times and len(shares) > 1 else ""
    return [f"The cells ran on {count_of(len(shares), 'machine')}: {told}."]


def _unavailable(absent: Iterable[Absence]) -> list[str]:
    configs: dict[tuple[str, str], int] = Counter((item.library, item.reason) for item in absent)
    return [
        f"{library} is unavailable and has no results in {count_of(number, 'config')}: {reason}."
        for (library, reason), number in configs.items()
    ]


def _decided(pairs: Sequence[PairVerdict]) -> list[str]:
    relations: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        if pair.verdict == "better":
            relations.setdefault((pair.a, "better than"), []).append(pair.b)
        elif pair.verdict == "worse":
            relations.setdefault((pair.b, "better than"), []).append(pair.a)
        elif pair.verdict == "equivalent":
            relations.setdefault((pair.a, "equivalent to"), []).append(pair.b)
    if not relations:
        return []
    parts = [f"{who} is {relation} {', '.join(others)}" for (who, relation), others in relations.items()]
    return [f"{pairs[0].label}: {'; '.join(parts)}."]


def _undecided(pairs: Sequence[PairVerdict], of_error: str) -> list[str]:
    """The inconclusive pairs, unless all are, which the answer says. Of many, what the splits could have shown."""
    undecided = [pair for pair in pairs if pair.verdict == "inconclusive"]
    if len(undecided) == len(pairs) and not any(pair.note for pair in pairs):
        return []
    visible = [pair.detectable / scale for pair in undecided if pair.detectable and (scale := find_scale(pair))]
    if len(undecided) < 3 or len(visible) < len(undecided):
        return [pair.text for pair in undecided]
    n = min(pair.n for pair in undecided)
    least, most = (percent(share, sign=False) for share in (min(visible), max(visible)))
    text = (
        f"{undecided[0].label}: {len(undecided)} of {len(pairs)} pairs are inconclusive; {n} splits could have shown a"
        f" difference of {least} at best and {most} at worst{of_error and f' ({of_error.strip()})'}."
    )
    return [text]


def _skewed(contenders: Iterable[Contender], pairs: Iterable[PairVerdict]) -> list[str]:
    """Differences in log loss on so few rows that one of them, surely wrong, may have made the verdict.

    So few splits cannot show the skewness themselves, so the number of rows must do; the rates are in the docs.
    """
    rows = [result.n_valid for contender in contenders for result in contender.results if result.n_valid]
    if not rows or min(rows) >= _FEW_ROWS:
        return []
    doubtful: dict[str, list[str]] = {}
    for pair in pairs:
        metric = resolve(pair.metric)
        if metric is None or metric.name not in LOG_LOSSES or pair.verdict not in ("better", "worse"):
            continue
        if pair.p is not None and pair.alpha is not None and pair.p > _SURE * pair.alpha:
            doubtful.setdefault(pair.label, []).append(f"{pair.a} and {pair.b} ({p_value(pair.p)})")
    return [
        f"{label}: with only {min(rows)} test rows, a few of them may decide, and these p-values may be too small:"
        f" {', '.join(found)}."
        for label, found in doubtful.items()
    ]


def _period(contenders: Iterable[Contender], pairs: Sequence[PairVerdict]) -> list[str]:
    splits = (result.split for contender in contenders for result in contender.results)
    if not pairs or not any(split is not None and split.kind == "time" for split in splits):
        return []
    text = (
        "Windows of time: a verdict is about the period that the data covers. If the world changes for longer than"
        " that, the next period may have another order."
    )
    return [text]


def _machines_apart(places: Places, columns: Sequence[Column]) -> list[str]:
    """How many pairs of times, and of memory, are not compared, because they were measured on two machines."""
    if not places.pairs_apart or not any(column.name in OF_MACHINE for column in columns):
        return []
    every = places.pairs_apart == places.pairs
    which = f"All {places.pairs}" if every else f"{places.pairs_apart} of {places.pairs}"
    left = len(places.repeats - places.apart)
    over = f"over the {count_of(left, 'split')} that all ran on one machine" if left else "left out"
    verdict = ", so there is no verdict on them" if every else ""
    text = f"{which} pairs of times were measured on two machines and are not compared{verdict}"
    return [f"{text}; the means of times and memory are {over}."]


def name_failure(errors: Sequence[BenchmarkError]) -> str:
    """The commonest failure in a few words, for an answer."""
    kinds = Counter(f"{error.error_type}: {_first_line(error.error_message)}" for error in errors)
    said = clean(kinds.most_common(1)[0][0].rstrip("."))
    return said if len(said) <= _SHORTEST else f"{said[:_SHORTEST]}[...]"


def tell_failure(name: str, errors: Sequence[BenchmarkError], n_finished: int) -> str:
    kinds = Counter(f"{error.error_type}: {_first_line(error.error_message)}" for error in errors)
    commonest = kinds.most_common(1)[0][0].rstrip(".")
    more = f" and {count_of(len(kinds) - 1, 'further kind')}" if len(kinds) > 1 else ""
    return f"{name}: {len(errors)} of {len(errors) + n_finished} cells failed ({commonest}{more})."


def _flaky(results: Sequence[BenchmarkResult]) -> list[str]:
    """Failures that were tried again until they worked, per config and library."""
    tries: dict[tuple[str, str], list[int]] = {}
    for result in results:
        tries.setdefault((result.config_name, result.library), []).append(result.failed_before)
    return [
        f"{config}: {library} is flaky: {group_digits(len(failed))} of its cells finished only after failing"
        f" ({group_digits(sum(failed))} failed tries in all)."
        for (config, library), failed in tries.items()
    ]


def _taken(results: Sequence[BenchmarkResult]) -> list[str]:
    count = sum(result.taken_from is not None for result in results)
    were = "cell was" if count == 1 else "cells were"
    told = f"{group_digits(count)} {were} taken over from earlier runs with the same content, without times."
    return [told] if count else []


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} [...]"


def _capacity(contenders: Sequence[Contender]) -> list[str]:
    """Trees and leaves actually built, where they differ enough to decide a comparison."""
    trees = _means(contenders, "n_trees_trained")
    leaves = _means(contenders, "n_leaves_total")
    unequal_trees = len(set(trees.values())) > 1
    unequal_leaves = len(leaves) > 1 and max(leaves.values()) > (1 + _LEAVES_APART) * min(leaves.values())
    if not unequal_trees and not unequal_leaves:
        return []
    parts = []
    for contender in contenders:
        sizes = [
            f"{group_digits(means[contender.name])} {unit}"
            for means, unit in ((trees, "trees"), (leaves, "leaves"))
            if contender.name in means
        ]
        if sizes:
            parts.append(f"{contender.name} {', '.join(sizes)}")
    return [f"The models differ in size (mean of each library): {'; '.join(parts)}."]


def _means(contenders: Iterable[Contender], name: str) -> dict[str, float]:
    out = {}
    for contender in contenders:
        values = [v for result in contender.results if (v := getattr(result, name)) is not None]
        if values:
            out[contender.name] = sum(values) / len(values)
    return out


def _marks(collection: ResultCollection) -> list[str]:
    """Every canonical parameter that is not mapped exactly, each with the libraries that share the reason."""
    seen: dict[tuple[str, str, str], dict[str, set[str]]] = {}
    for result in collection.results:
        for mark in result.marks:
            if mark.kind != "exact":
                key = (mark.parameter, mark.kind, mark.reason)
                seen.setdefault(key, {}).setdefault(result.library, set()).add(result.config_name)
    out, every = [], len({result.config_name for result in collection.results})
    for (parameter, kind, reason), libraries in seen.items():
        configs = set.union(*libraries.values())
        some = ", ".join(sorted(configs)) if len(configs) <= 3 else f"{len(configs)} configs"
        where = "" if len(configs) == every else f" in {some}"
        out.append(f"{join_words(libraries)}: {parameter} is {kind}{where}{f' ({reason})' if reason else ''}.")
    return out


def _tally(findings: Iterable[tuple[str, str]], form: str) -> list[str]:
    """Each finding once, with its count. A long list is cut short, and the rest is only counted."""
    found = Counter(findings)
    out = []
    for (library, text), times in found.most_common(_SHOWN):
        line = form.format(library=library, text=text).rstrip(".")
        out.append(f"{line}{f' ({times} times)' if times > 1 else ''}.")
    rest = len(found) - len(out)
    return [*out, f"{count_of(rest, 'further finding')} of this kind."] if rest > 0 else out
