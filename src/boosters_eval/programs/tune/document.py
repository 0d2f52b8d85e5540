"""What tuning is worth, laid out: the answer in six lines, each library before and after, and how it came about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, group_digits, join_words, lower_initial
from boosters_eval.engine.observer import format_duration
from boosters_eval.reports.document import (
    Charts,
    Document,
    Fact,
    Listing,
    MarkedCell,
    Notes,
    PlainTable,
    Section,
)
from boosters_eval.reports.html.curves import CurvePoint, draw_curves
from boosters_eval.reports.numbers import MISSING, number, percent
from boosters_eval.reports.tables import Column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.tune.findings import TunedConfig, TunedLibrary, TunedTask, TuneFindings
    from boosters_eval.reports.document import PlainCell
    from boosters_eval.reports.html.svg import Figure

_SHORT = 10  # seconds
_MATTERS = 0.05  # the level at which a parameter is told to matter
_ROWS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # numbers of trials in the table
_TONES = {"better": "better", "worse": "worse", "equivalent": "", "inconclusive": ""}


def lay_out(found: TuneFindings) -> Document:
    several = len(found.tasks) > 1
    sections = [section for place, task in enumerate(found.tasks) for section in _sections(found, task, place, several)]
    named = join_words(task.dataset for task in found.tasks)
    return Document(
        f"Tuning on {named}" if found.tasks else "Tuning",
        tuple(_answer(found)),
        facts=(Fact("trials each", str(found.trials)), Fact("fits", group_digits(found.cells))),
        sections=(
            *sections,
            Section("space", "What was searched", tuple(_spaces(found)), detail=True),
            Section("notes", "Notes", (Notes(tuple(_notes(found))),)),
        ),
    )


def _answer(found: TuneFindings) -> Iterator[str]:
    if not found.tasks:
        yield "Which: no answer. No library finished with its defaults on any split."
    for task in found.tasks:
        on = f", on {task.dataset}" if len(found.tasks) > 1 else ""
        if task.suspicion:
            yield f"Which{on}: no answer yet. The data are suspect: {task.suspicion}."
        elif task.which:
            yield f"Which{on}: after {count_of(found.trials, 'trial')} each, {task.which}."
        yield f"Worth it{on}: {tell_worth(task)}."
    if len(found.tasks) == 1:
        task = found.tasks[0]
        if task.sure and not task.suspicion:
            yield f"How sure: {task.sure}."
        but = "; ".join(_list_reservations(found, task))
        if but:
            yield f"But: {but}."
    cost = _tell_cost(found)
    if cost:
        yield f"Cost: {cost}."
    command = next((f"{task.reason}: {task.command}" for task in found.tasks if task.command), "")
    if command:
        yield f"Next: {command}"


def tell_worth(task: TunedTask) -> str:
    """What tuning is worth to each library: the error that it takes away, with how sure that is."""
    by = {word: [one for one in task.libraries if one.worth == word] for word in _TONES}
    parts = []
    if by["better"]:
        ranked = sorted(by["better"], key=lambda one: -(one.percent or 0.0))
        parts.append(f"tuning is worth {join_words(f'{_gain(one)} for {one.library}' for one in ranked)}")
    if by["worse"]:
        parts.append(f"it does harm to {join_words(f'{one.library} ({_gain(one)})' for one in by['worse'])}")
    if by["equivalent"]:
        parts.append(
            f"it changes next to nothing for {join_words(f'{one.library} ({_gain(one)})' for one in by['equivalent'])}"
        )
    if by["inconclusive"]:
        told = join_words(f"{one.library} ({_gain(one)})" for one in by["inconclusive"])
        parts.append(f"nothing you could see for {told}")
    return "; ".join(parts)


def _gain(one: TunedLibrary) -> str:
    """How much lower the error is, and half the interval."""
    if one.percent is None:
        return MISSING
    half = None if one.low is None or one.high is None else (one.high - one.low) / 2
    return f"{one.percent:.1f} %" + ("" if half is None else f" \N{PLUS-MINUS SIGN} {half:.1f}")


def _list_reservations(found: TuneFindings, task: TunedTask) -> Iterator[str]:
    """What turns round, and what is missing."""
    if task.default_leader and task.leader and task.default_leader != task.leader:
        turn = next(
            (one for one in task.overtaking if (one.ahead, one.behind) == (task.leader, task.default_leader)), None
        )
        since = f": {task.leader} overtakes it after {count_of(turn.trials, 'trial')}" if turn else ""
        told = "" if turn is None or turn.told_apart else ", though the two are not told apart"
        yield f"with defaults {task.default_leader} has the best mean {lower_initial(task.label)}{since}{told}"
    if task.equal_cpu_leader not in (None, task.leader):
        time = number(task.equal_cpu_s or 0.0, 2)
        yield f"where each search may take only {time} CPU seconds, {task.equal_cpu_leader} has the best one"
    yield from task.doubts
    yield from found.notes
    if found.excluded:
        yield f"left out: {'; '.join(found.excluded)}"


def _tell_cost(found: TuneFindings) -> str:
    every = [one for task in found.tasks for one in task.libraries]
    of = "" if len(found.tasks) == 1 else " (of the first data set)"
    known = [(one.curve[-1].cpu_s, one.library) for one in found.tasks[0].libraries] if found.tasks else []
    times = [f"{name} {number(seconds, 2)} s" for seconds, name in sorted((s, n) for s, n in known if s is not None)]
    search = f"CPU time of one search with {count_of(found.trials, 'trial')}{of}: {', '.join(times)}. " if times else ""
    total = sum(one.cpu_s or 0.0 for one in every)
    time = f"{number(total, 2)} s" if total < _SHORT else format_duration(total)
    spent = f", which took {time} of CPU time" if total else ""
    return f"{search}All in all, {count_of(found.cells, 'fit')}{spent}"


def _sections(found: TuneFindings, task: TunedTask, place: int, several: bool) -> Iterator[Section]:
    end, on = (f"-{place + 1}", f" on {task.dataset}") if several else ("", "")
    arrow = "\N{UPWARDS ARROW}" if task.higher_is_better else "\N{DOWNWARDS ARROW}"
    rows = tuple(_row(one) for one in _ranked(task))
    headings = (
        "Library",
        f"{task.label} {arrow} with defaults",
        "Tuned",
        "Error lower by",
        "95 % interval",
        "Configurations chosen",
    )
    yield Section(f"worth{end}", f"Before and after{on}", (PlainTable("Worth", headings, rows, measured=True),))
    ks = [k for k in _ROWS if k < found.trials] + [found.trials]
    table = PlainTable(
        "Expected best",
        ("Library", *("defaults" if k == 0 else f"{k}" for k in ks)),
        tuple((one.library, *(number(one.curve[k].score) for k in ks)) for one in _ranked(task)),
        measured=True,
    )
    yield Section(f"trials{end}", f"{task.label} after so many trials{on}", (table, Charts(lambda: _draw(task))))
    turned = tuple(_tell_turns(task))
    yield Section(f"overtaking{end}", f"Who overtakes whom{on}", (Listing.of(*turned),) if turned else ())
    configs = tuple(
        (one.library, one.best.trial or "defaults", f"{one.best.splits} of {task.splits}", _tell_values(one.best))
        for one in _ranked(task)
    )
    yield Section(
        f"configurations{end}",
        f"Configurations that won{on}",
        (PlainTable("Configurations", ("Library", "Trial", "Splits that chose it", "Parameters"), configs),),
    )
    yield Section(f"parameters{end}", f"Which parameters mattered{on}", (Listing.of(*_tell_what_matters(task)),))
    told = tuple(_tell_parameters(task))
    columns = ("Library", "Parameter", "Explains alone", "Best trials", "Mapped")
    yield Section(
        f"shares{end}",
        f"What each parameter explains{on}",
        (PlainTable("Parameters", columns, told, keys=2),) if told else (),
        detail=True,
    )


def _ranked(task: TunedTask) -> list[TunedLibrary]:
    return sorted(task.libraries, key=lambda one: -one.tuned if task.higher_is_better else one.tuned)


def _row(one: TunedLibrary) -> tuple[PlainCell, ...]:
    bounds = None if one.low is None or one.high is None else f"{one.low:+.1f} to {one.high:+.1f} %"
    size = MISSING if one.percent is None else f"{one.percent:+.1f} %"
    return (
        one.library,
        number(one.default),
        number(one.tuned),
        MarkedCell(size, _TONES[one.worth], value=one.percent),
        bounds,
        len(one.chosen),
    )


def _tell_values(config: TunedConfig) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.values.items()) or "its own defaults"


def _tell_turns(task: TunedTask) -> Iterator[str]:
    for one in task.overtaking:
        cost = "" if one.cpu_s is None else f" ({number(one.cpu_s, 2)} CPU seconds)"
        told = "" if one.told_apart else "; they are not told apart"
        yield f"{one.ahead} overtakes {one.behind} after {count_of(one.trials, 'trial')}{cost}{told}"


def _tell_what_matters(task: TunedTask) -> Iterator[str]:
    """A line for each library; those of which nothing can be told share one."""
    unknown = []
    for one in _ranked(task):
        found = sorted((each for each in one.parameters if each.p <= _MATTERS), key=lambda each: -each.share)
        told = (
            f"{each.name} explains {percent(each.share, sign=False)} of the order of the trials, and the best of them"
            f" have {each.best[0]:g} to {each.best[1]:g}"
            for each in found
        )
        if found:
            yield f"{one.library}: {'; '.join(told)}"
        else:
            unknown.append(one.library)
    if unknown:
        trials = count_of(task.libraries[0].trials, "trial")
        yield f"{join_words(unknown)}: {trials} cannot tell the part of any parameter from chance"


def _tell_parameters(task: TunedTask) -> Iterator[tuple[PlainCell, ...]]:
    for one in _ranked(task):
        for each in sorted(one.parameters, key=lambda each: -each.share):
            apart = each.p <= _MATTERS
            share = MarkedCell(
                percent(each.share, sign=False) + ("" if apart else ", not told apart"),
                "better" if apart else "",
                each.share,
            )
            low, high = each.best
            yield one.library, each.name, share, f"{low:g} to {high:g}", one.marks.get(each.name, "exact")


def _draw(task: TunedTask) -> Sequence[Figure]:
    """The expected best by trials, and by the CPU time of a search with so many."""
    series = {one.library: at for at, one in enumerate(task.libraries)}
    column = Column(task.metric, task.label, task.higher_is_better)
    by_trials = {
        one.library: [
            CurvePoint(at.trials, at.score, f"{one.library}, {count_of(at.trials, 'trial')}: {number(at.score)}")
            for at in one.curve
        ]
        for one in task.libraries
    }
    by_time = {
        one.library: [
            CurvePoint(at.cpu_s, at.score, f"{one.library}, {number(at.cpu_s, 2)} CPU seconds: {number(at.score)}")
            for at in one.curve
            if at.cpu_s is not None
        ]
        for one in task.libraries
    }
    by_time = {name: points for name, points in by_time.items() if points}
    ends = "; ".join(f"{one.library} from {number(one.default)} to {number(one.tuned)}" for one in task.libraries)
    drawn = [
        draw_curves(
            lines,
            series,
            column,
            across,
            name=f"{task.dataset} {what}",
            title=f"{task.dataset}: {task.label} by {what}",
            description=f"Expected {task.label} of the best configuration by {what} on {task.dataset}: {ends}.",
            caption=f"What the best of so many trials is expected to score, by {what}; at the left end, the defaults.",
        )
        for lines, across, what in (
            (by_trials, "trials", "trials"),
            (by_time, "CPU seconds of one search", "CPU time"),
        )
        if lines
    ]
    return [figure for figure in drawn if figure is not None]


def _spaces(found: TuneFindings) -> Iterator[PlainTable]:
    alike: dict[str, list[str]] = {}
    for library, axes in found.axes.items():
        alike.setdefault(str(axes), []).append(library)
    for libraries in alike.values():
        axes = found.axes[libraries[0]]
        rows = tuple((name, f"{low:g}", f"{high:g}", scale) for name, (low, high, scale) in axes.items())
        yield PlainTable(join_words(libraries), ("Parameter", "From", "To", "Scale"), rows)


def _notes(found: TuneFindings) -> Iterator[str]:
    parts = "a fifth" if found.inner == 1 else f"{found.inner} fifths, one after the other,"
    drawn = "at random" if found.sampler == "random" else "as a Sobol sequence"
    yield (
        f"Configurations were drawn {drawn}. On each split, the best was chosen by {parts} of the training rows that"
        " its models had not seen, and scored on the test rows after learning from all training rows. Defaults compete"
        " too."
    )
    yield (
        "What the best of k trials is expected to score is exact: the mean over all sets of k of the trials that were"
        " drawn. Intervals are of the difference to the defaults, row by row, and hold for all libraries together."
    )
    marks = {one.library: one.marks for task in found.tasks for one in task.libraries if one.marks}
    for library, kinds in marks.items():
        by_kind: dict[str, list[str]] = {}
        for name, kind in kinds.items():
            by_kind.setdefault(kind, []).append(name)
        listed = "; ".join(f"{join_words(names)} {kind}" for kind, names in by_kind.items())
        yield f"{library}: {listed}; what else is searched is mapped exactly."
    if found.space == "own":
        yield "Each library searched its own parameters, so trials of the same number have nothing in common."
