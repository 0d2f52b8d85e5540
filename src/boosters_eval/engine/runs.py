"""The runs of a home: how one is found, trusted, read by its kind, and removed."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import BoostersEvalError, BoostersEvalWarning, ConfigError, RunError, suggest
from boosters_eval.core.files import find_home
from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.core.text import add_article, join_words
from boosters_eval.engine import summaries
from boosters_eval.engine.artifacts import load_array, locate_array
from boosters_eval.engine.cell import CellOutcome, Failure, Outcome
from boosters_eval.engine.folder import RunFolder, find_journal_fault
from boosters_eval.engine.journal import pause_collection, read_journal
from boosters_eval.engine.predictions import PredictionsRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from boosters_eval.engine.cell import Spec
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.journal import Reading
    from boosters_eval.engine.plan import Plan


def find_folder(plan: Plan, where: Path | None = None) -> RunFolder | None:
    """The folder of exactly this plan, if it has an attempt."""
    folder = RunFolder(find_home(where) / "runs" / plan.run_id)
    return folder if folder.attempts() else None


def list_run_folders(where: Path | None = None) -> list[RunFolder]:
    """All runs that began, the latest first."""
    return sorted((folder for folder in list_folders(where) if folder.attempts()), key=RunFolder.time, reverse=True)


def list_folders(where: Path | None = None) -> list[RunFolder]:
    """Whatever is in the folder of the runs, except for what is being removed."""
    root = find_home(where) / "runs"
    return [RunFolder(path) for path in root.iterdir() if path.name[0] != "."] if root.is_dir() else []


def find_run(reference: str, where: Path | None = None, *, kind: str | None = None) -> RunFolder:
    """A run by its id, the beginning of its id, the name that it was given, or `last`, the latest of a kind.

    Of several runs with one name, the latest is found, which is said. ID/ATTEMPT is one attempt.
    """
    folders = list_run_folders(where)
    if reference == "last" and folders:
        return _last(folders, kind, where)
    run_id, _, attempt = reference.partition("/")
    found = [folder for folder in folders if folder.run_id.startswith(run_id)] if run_id else []
    exact = [folder for folder in found if folder.run_id == run_id]
    if len(found) == 1 or exact:
        return _choose_attempt((exact or found)[0], attempt)
    if found:
        raise ConfigError(f"The run id '{reference}' is ambiguous: {join_words(map(_told, found), most=_LISTED)}.")
    named = [named for folder in folders for named in _named(folder, reference)] if reference else []
    if named:
        named.sort(key=RunFolder.time, reverse=True)  # by the attempts of that name: a later one may have another
        return _latest_named(named, reference, kind)
    if not folders:
        raise ConfigError(f"No run '{reference}' in {find_home(where) / 'runs'}: there are none yet.")
    known = [folder.run_id for folder in folders]
    names = {summaries.find_name(folder, attempt) for folder in folders for attempt in folder.attempts()}
    hint = suggest(reference, [*known, *filter(None, names)])
    raise ConfigError(f"No run '{reference}' in {find_home(where) / 'runs'}.{hint or _SEE_LIST}")


def _choose_attempt(folder: RunFolder, attempt: str) -> RunFolder:
    if not attempt:
        return folder
    known = list(map(str, folder.attempts()))
    if attempt not in known:
        has = f"{'attempt' if len(known) == 1 else 'attempts'} {join_words(known)}"
        raise ConfigError(f"Run {folder.run_id} has no attempt '{attempt}', only {has}.")
    return RunFolder(folder.path, int(attempt))


_LISTED = 5  # runs in a sentence
_SEE_LIST = " See 'boosters-eval runs list'."


def _last(folders: list[RunFolder], kind: str | None, where: Path | None) -> RunFolder:
    """The latest run of a kind. If another one is later, that is said: somebody may have meant it."""
    if kind is None:
        return folders[0]
    kinds = ((folder, summaries.find_kind(folder, folder.attempts()[-1])) for folder in folders)
    first = found = None
    for folder, its_kind in kinds:
        first = first or (folder, its_kind)
        if its_kind in (kind, ""):  # one whose files do not tell is not passed over: whoever reads it says why
            found = folder
            break
    if found is None:
        raise ConfigError(f"There is no {kind} run in {find_home(where) / 'runs'}, only others.{_SEE_LIST}")
    if first is not None and first[0] is not found:
        other = f"{first[0].run_id} is later, but {add_article(first[1])} run"
        message = f"'last' is {found.run_id}, the latest {kind} run; {other}."
        warnings.warn(message, BoostersEvalWarning, stacklevel=3)
    return found


def _named(folder: RunFolder, name: str) -> Iterator[RunFolder]:
    for attempt in reversed(folder.attempts()):
        if summaries.find_name(folder, attempt) == name:
            yield RunFolder(folder.path, attempt)
            return


def _latest_named(named: list[RunFolder], name: str, kind: str | None) -> RunFolder:
    fitting = [folder for folder in named if kind is None or summaries.find_kind(folder, folder.attempt or 1) == kind]
    first, *others = fitting or named
    earlier = first.facts(first.attempt or 1).extends
    for folder in list(others):  # the looks of one run with seeds="auto" share its name
        if folder.run_id == earlier:
            earlier = folder.facts(folder.attempt or 1).extends
            others.remove(folder)
    if others:
        told = join_words((folder.run_id for folder in others), most=_LISTED)
        message = f"'{name}' is {first.run_id}, the latest run of that name; others are {told}."
        warnings.warn(message, BoostersEvalWarning, stacklevel=3)
    return first


def _told(folder: RunFolder) -> str:
    name = summaries.find_name(folder, folder.attempts()[-1])
    return f"{folder.run_id} ({name})" if name else folder.run_id


def verify(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """Per attempt, the journal's name and what is wrong with it: '' if it is complete, unchanged and of this plan."""
    fault = _plan_fault(folder.plan(), folder.run_id)
    if fault:
        yield "plan.json", fault
    for attempt in folder.attempts():
        path = folder.journal_path(attempt)
        reading = read_journal(path)
        yield path.name, find_journal_fault(reading, set(folder.plan(attempt).keys), folder.run_id)
        if not fault and not reading.damage:
            yield from folder.faults_beside(attempt, reading)
            yield from _array_faults(folder, reading)


def find_damage(folder: RunFolder) -> str:
    """What is damaged of a run, its arrays apart; '' if nothing is. That an attempt is unfinished is no damage."""
    try:
        if fault := _plan_fault(folder.plan(), folder.run_id):
            return f"plan.json {fault}"
        for attempt in folder.attempts():
            path = folder.journal_path(attempt)
            reading = read_journal(path)
            keys = set(folder.plan(attempt).keys)
            fault = find_journal_fault(reading, keys, folder.run_id, finished=reading.sealed)
            faults = [(path.name, fault)] if fault else [*folder.faults_beside(attempt, reading)]
            for name, what in faults:
                return f"{name}: {what.removeprefix('damaged: ')}"
    except (BoostersEvalError, OSError) as error:
        return str(error).rstrip(".")
    return ""


def _array_faults(folder: RunFolder, reading: Reading) -> Iterator[tuple[str, str]]:
    """What is wrong with the arrays that outcomes name; predictions that are recorded as removed are no fault."""
    outcomes = [outcome for outcome in reading.outcomes.values() if isinstance(outcome, Outcome)]
    named = {(folder.arrays, digest) for outcome in outcomes for digest in outcome.digests}
    record = PredictionsRecord.read(folder)
    removed = frozenset(record.removed if record else ())
    for digest in {digest for outcome in outcomes for digest in outcome.kept_digests}:
        if digest not in removed or locate_array(folder.predictions, digest).exists():
            named.add((folder.predictions, digest))
    for place, digest in sorted(named):
        try:
            load_array(place, digest)
        except RunError as error:
            yield f"{place.name}/{digest}", str(error).rstrip(".")


def load_verified(folder: RunFolder, attempt: int | None = None) -> Run:
    """One attempt, by default the latest, for whoever decides on it: what `verify` objects to is refused.

    The run id is computed again from the plan; the journal must be chained, complete and sealed.
    """
    known = folder.attempts()
    attempt = folder.attempt if attempt is None else attempt
    number = attempt if attempt is not None else known[-1] if known else 1
    if number not in known:
        raise RunError(f"Run {folder.run_id} has no attempt {number}.")
    path = folder.journal_path(number)
    with pause_collection():
        plan = folder.plan(number)
        reading = read_journal(path)
    faults = {
        folder.plan_path(number): _plan_fault(plan, folder.run_id),
        path: find_journal_fault(reading, set(plan.keys), folder.run_id),
    }
    for file, fault in faults.items():
        if fault:
            raise RunError(f"Nothing is decided on a run that cannot be verified: {file}: {fault}.")
    return folder.run(plan, number, reading)


def _plan_fault(plan: Plan, run_id: str) -> str:
    same = plan.run_id == run_id
    return "" if same else f"has the digest {plan.run_id}, so it is not the plan of run {run_id}"


_LEAVING = ".removed-"


def remove(folder: RunFolder) -> None:
    """Remove a run as a whole: it is renamed first, so that no half of it is ever found.

    A link is removed itself, not what it leads to.
    """
    path = folder.path
    try:
        if path.is_symlink():
            path.unlink()
            return
        with folder.hold():
            away = path.with_name(f"{_LEAVING}{secrets.token_hex(4)}-{path.name}")
            path.rename(away)
            _remove_tree(away)
    except OSError as error:
        raise RunError(f"Cannot remove {path}: {error.strerror}.") from None


def clear_leftovers(where: Path | None = None) -> None:
    """Finish what a removal that was killed has begun."""
    root = find_home(where) / "runs"
    for path in root.glob(f"{_LEAVING}*") if root.is_dir() else ():
        with contextlib.suppress(OSError):
            _remove_tree(path)


def _remove_tree(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    else:
        shutil.rmtree(path)  # follows no links


@dataclass(frozen=True)
class Competing:
    """The cells of one spec and target that have an outcome, in the plan's order."""

    spec: Spec
    target: str
    planned: int
    results: tuple[Outcome, ...]
    failures: tuple[Failure, ...]


class RunKind:
    """A run, as its program reads it. The base tells of any run what can be told without knowing its workload."""

    workloads: ClassVar[frozenset[str]] = frozenset()  # that a run of this kind may have

    def __init__(self, run: Run, folder: RunFolder) -> None:
        self.run, self.folder = run, folder

    @cached_property
    def findings(self) -> Any:
        """What the program concludes from the run; one that it cannot read is a RunError."""
        return self.run

    def parameters(self, cells: Competing) -> Mapping[str, Any]:
        """What was asked for, and what the target made of that as far as results tell."""
        return cells.spec.model_dump(mode="json", exclude={"name"})

    def facts(self, cells: Competing) -> Mapping[str, Any]:  # noqa: ARG002 (of any target, its build is known)
        """What else is known of a spec and target: digests, verdicts."""
        return {}

    def numbers(self, result: Outcome) -> Mapping[str, float | None]:
        """What one cell measured: metrics, times."""
        own = (name for name in type(result).model_fields if name not in CellOutcome.model_fields)
        return {name: value for name in own if type(value := getattr(result, name)) in (int, float)}

    def summary(self, cells: Competing) -> Mapping[str, float | None]:  # noqa: ARG002 (means are taken of all numbers)
        """What a spec and target are told to have come to, besides the means of their numbers."""
        return {}

    def files(self) -> Mapping[str, str]:
        """The reports on a run that came to its end, by the names of their files."""
        return {}

    def competing(self) -> list[Competing]:
        """All that has an outcome, in the plan's order."""
        plan = self.run.plan
        found: dict[tuple[int, str], list[Outcome | Failure | None]] = {}
        for key, ref in zip(plan.keys, plan.refs, strict=True):
            found.setdefault((ref.spec, ref.target), []).append(self.run.outcomes.get(key))
        return [
            Competing(
                plan.specs[spec],
                target,
                len(outcomes),
                tuple(item for item in outcomes if item is not None and not isinstance(item, Failure)),
                tuple(item for item in outcomes if isinstance(item, Failure)),
            )
            for (spec, target), outcomes in found.items()
            if any(outcomes)
        ]


# The kinds of this package are entry points as well, so that the engine need not know them.
RUN_KINDS: Registry[type[RunKind]] = Registry("kind of run", group="boosters_eval.kinds", fault=must_extend(RunKind))


def read_kind(run: Run, folder: RunFolder) -> RunKind:
    """The run as its program reads it; the base, where none is registered or it is said to be what it is not."""
    workloads = {spec.workload for spec in run.plan.specs}
    kind = RUN_KINDS.get(run.facts.kind)
    return (RunKind if kind is None or not workloads <= kind.workloads else kind)(run, folder)
