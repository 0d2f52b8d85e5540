"""What was not the same in the paper and here: listed by the program, not left to the reader."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from boosters_eval.programs.paper.comparison import ConditionDifference
from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boosters_eval.programs.paper.comparison import TargetComparison
    from boosters_eval.programs.paper.results import PaperResults
    from boosters_eval.programs.paper.specification import PaperDataset, PaperResult, PaperSpecification

_NOT_STATED = "not stated"
_NOT_RECORDED = "not recorded"


def conditions_of(printed: PaperResult, dataset: PaperDataset) -> dict[str, str]:
    """The paper's conditions of a result as text, those of its data set included."""
    found = {"split": dataset.split, "preprocessing": dataset.preprocessing, "hardware": printed.hardware or ""}
    stated = {name: value for name, value in found.items() if value}
    return stated | {name: _text(value) for name, value in printed.conditions.items()}


def notes_of_paper(spec: PaperSpecification, tables: Iterable[str]) -> tuple[str, ...]:
    """What the specification says of all rows, and of those of these tables."""
    said = spec.conditions
    stated = {"hardware": said.hardware, **{f"version of {name}": version for name, version in said.versions.items()}}
    general = [f"{name}: {value}" for name, value in {**stated, "seeds": said.seeds}.items() if value is not None]
    wanted = set(tables)
    own = [f"{table.id}: {note}" for table in spec.tables if table.id in wanted for note in table.notes]
    return (*general, *said.notes, *own)


def hardware_of(environment: Mapping[str, str]) -> str:
    """Our machine in a few words, as the run recorded it."""
    parts = {"cpu_model": "{}", "cpu_cores": "{} cores", "memory_gb": "{} GB"}
    return ", ".join(text.format(environment[name]) for name, text in parts.items() if environment.get(name))


def differences_of(
    spec: PaperSpecification, results: PaperResults, targets: Sequence[TargetComparison]
) -> tuple[ConditionDifference, ...]:
    """Hardware, versions, seeds, what a deviation is over, and every other condition that the paper states."""
    found: dict[tuple[str, str, str], list[TargetComparison]] = {}
    ran = [target for target in targets if target.status == "ok"]
    hardware = hardware_of(results.environment) or _NOT_RECORDED
    for target in ran:
        table = spec.table(target.table)
        theirs = target.paper_conditions.get("hardware") or (table and table.hardware) or spec.conditions.hardware
        differing = (
            ("hardware", theirs or _NOT_STATED, hardware),
            *_versions(spec.conditions.versions, target.versions),
            *_seeds(spec.conditions.seeds, len(target.seeds)),
            *_stds(target),
            *_others(target.paper_conditions, target.our_conditions),
        )
        for difference in dict.fromkeys(differing):
            found.setdefault(difference, []).append(target)
    for difference in _others_versions(spec.conditions.versions, ran, results.environment):
        found[difference] = ran
    return tuple(
        ConditionDifference(what=what, where=_places(where, ran), paper=paper, ours=ours)
        for (what, paper, ours), where in found.items()
        if paper != ours
    )


def _places(where: Sequence[TargetComparison], ran: Sequence[TargetComparison]) -> tuple[str, ...]:
    """As few names as say where: nothing for everywhere, a table for all of its rows."""
    if len(where) == len(ran):
        return ()
    counts = Counter(target.table for target in ran)
    whole = {table for table, count in Counter(target.table for target in where).items() if count == counts[table]}
    return tuple(dict.fromkeys(target.table if target.table in whole else target.place for target in where))


def _versions(paper: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The versions of what ran this target."""
    stated = {name.lower(): version for name, version in paper.items()}
    for name, version in ours.items():
        theirs = stated.get(name.lower())
        if theirs is None or not _same_version(theirs, version):
            yield f"version of {name}", theirs or _NOT_STATED, version


def _others_versions(
    paper: Mapping[str, str], ran: Sequence[TargetComparison], environment: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """The versions that the paper states of what ran no target itself, such as Python's; a library must have."""
    known = {name.lower() for target in ran for name in target.versions} | set(RUNNERS)
    for name, version in paper.items() if ran else ():
        ours = environment.get(name.lower())
        if name.lower() not in known and (ours is None or not _same_version(version, ours)):
            yield f"version of {name}", version, ours or _NOT_RECORDED


def _same_version(stated: str, ours: str) -> bool:
    """A paper that states 1.4 means any 1.4.x."""
    parts = re.findall(r"[0-9a-z]+", stated.lower().removeprefix("v"))
    return parts == re.findall(r"[0-9a-z]+", ours.lower().removeprefix("v"))[: len(parts)]


def _seeds(paper: int | None, ours: int) -> Iterator[tuple[str, str, str]]:
    if paper != ours and (paper or ours):
        yield "number of seeds", _NOT_STATED if paper is None else str(paper), str(ours) if ours else _NOT_RECORDED


def _stds(target: TargetComparison) -> Iterator[tuple[str, str, str]]:
    for metric in target.metrics:
        if metric.paper_std is not None and metric.our_std is not None:
            yield "standard deviation over", metric.paper_std_over or _NOT_STATED, metric.our_std_over or _NOT_RECORDED


def _others(paper: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    known = {_plain(name): value for name, value in ours.items()}
    for name, value in paper.items():
        mine = known.get(_plain(name))
        if name != "hardware" and (mine is None or _plain(mine) != _plain(value)):
            yield _spelt(name), value, _NOT_RECORDED if mine is None else mine


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def _spelt(name: str) -> str:
    return name.replace("_", " ")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)
