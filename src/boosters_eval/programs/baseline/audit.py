"""Is a baseline what was recorded? Its own digest, the predictions beside it, and the sealed runs that it came from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, FileFormatError
from boosters_eval.core.files import find_home, load_json, read_text
from boosters_eval.core.text import count_of
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import load_verified
from boosters_eval.programs.baseline.model import BaselineResult, digest_content, digest_mapping, load_baseline
from boosters_eval.programs.baseline.sidecar import PredictionsFile, list_kept, locate_sidecar
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.runs import collect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.engine.folder import Run
    from boosters_eval.programs.baseline.model import Baseline, Source

_OF_RUN = ("run_id", "boosters_eval_version", "git_sha", "machine")
_CLOCKS_APART = timedelta(days=1)  # of the machine that recorded it and this one
_OF_WHOLE_RUN = ("config", "libraries", "boosters_version", "absent")  # depends on which pairs are recorded


@dataclass(frozen=True)
class BaselineAudit:
    """What of a baseline is not what was recorded, and what nobody could check."""

    faults: tuple[str, ...]
    unproven: tuple[str, ...]  # what nothing vouches for, whoever checks it
    elsewhere: tuple[str, ...]  # what would be checked if it were here

    @property
    def unchecked(self) -> tuple[str, ...]:
        return (*self.unproven, *self.elsewhere)


def audit_baseline(path: Path, home: Path | None = None) -> BaselineAudit:
    """Compare a baseline with all that vouches for it, as far as it can be reached."""
    baseline = load_baseline(path)
    raw: dict[str, Any] = load_json(read_text(path), str(path))
    faults: list[str] = []
    unproven: list[str] = []
    elsewhere: list[str] = []
    if raw.get("digest") is None:
        unproven.append("it has no digest of its own")
    elif digest_content(raw) != raw["digest"]:
        faults.append("it was changed after it was recorded: its digest is another one")
    if baseline.sources and baseline.mapping_digest != digest_mapping(baseline.results):
        faults.append("'mapping_digest' is not that of its parameters")
    _compare_predictions(baseline, locate_sidecar(path), faults, elsewhere)
    alone = sum(result.source is None for result in baseline.results)
    if alone:
        unproven.append(f"no run vouches for {count_of(alone, 'pair')}")
    if baseline.accepted:
        unproven.append("the reasons for what got worse, which are their author's")
    faults += _judge_date(baseline)
    for name, source in baseline.sources.items():
        folder = RunFolder(find_home(home) / "runs" / source.run_id)
        if source.attempt in folder.attempts():
            faults += _compare_with_run(baseline, name, source, folder, unproven)
        else:
            pairs = sum(result.source == name for result in baseline.results)
            elsewhere.append(f"run {name}, which {count_of(pairs, 'pair')} came from, is not in this home")
    if len(baseline.sources) > 1:
        unproven.append("which pairs it has and what it says besides them, as it was merged from several runs")
    return BaselineAudit(tuple(faults), tuple(unproven), tuple(elsewhere))


def _judge_date(baseline: Baseline) -> Iterator[str]:
    """When it was recorded is when the last of its pairs were."""
    if baseline.sources and baseline.recorded_at != max(one.recorded_at for one in baseline.sources.values()):
        yield "it says that it was recorded before its pairs were, or after"
    if baseline.recorded_at > datetime.now(UTC) + _CLOCKS_APART:
        yield "it says that it was recorded in the future"


def find_beginning(run: Run) -> datetime | None:
    """When the first of its outcomes could be there; None if no time, or none with a zone, was recorded.

    An attempt that took over the outcomes of an earlier one began with that, as its facts say.
    """
    times = [str(run.begin.get("at")), *filter(None, [run.facts.started_at])]
    try:
        began = min(when for when in map(datetime.fromisoformat, times) if when.tzinfo is not None)
    except ValueError:
        return None
    return began.replace(microsecond=0)  # as the time of a recording is


def _compare_predictions(baseline: Baseline, place: Path, faults: list[str], elsewhere: list[str]) -> None:
    named = list_kept(baseline)
    if not place.exists():
        if named:
            elsewhere.append(f"{place.name} with its predictions is not there")
        return
    try:
        file = PredictionsFile(place)
        missing = [digest for digest in named if file.find(digest) is None]
    except FileFormatError as error:
        faults.append(str(error).rstrip("."))
        return
    if missing:
        elsewhere.append(f"{place.name} lacks {len(missing)} of {count_of(len(named), 'array')}")
    if foreign := file.digests - set(named):
        faults.append(f"{place.name} has {count_of(len(foreign), 'array')} that the baseline does not name")


def _compare_with_run(
    baseline: Baseline, name: str, source: Source, folder: RunFolder, unproven: list[str]
) -> Iterator[str]:
    """What the sealed run says otherwise: the baseline of it is made again."""
    try:
        run = load_verified(folder, source.attempt)
        if run.digest != source.journal:
            yield f"it names another journal than that of run {name}"
            return
        if (began := find_beginning(run)) is not None and source.recorded_at < began:
            yield f"it says that it was recorded before run {name} began"
            return
        made = make_baseline(collect(run), allow_flaky=len(run.outcomes), continue_on_error=True)
    except BoostersEvalError as error:
        yield str(error).rstrip(".")
        return
    measured = {result.key: result for result in made.results}
    mine = [result for result in baseline.results if result.source == name]
    for result in mine:
        for field in BaselineResult.model_fields:
            found = measured.get(result.key)
            if found is None or getattr(found, field) != getattr(result, field):
                yield f"'{field}' of {result.config} {result.library} is not what run {name} has"
                return
        if baseline.libraries.get(result.library) != made.libraries.get(result.library):
            yield f"the version or build of {result.library} is not that of run {name}"
            return
    if len(mine) < len(baseline.results) or len(baseline.sources) > 1:  # merged into it
        return
    fields = (*_OF_RUN, *_OF_WHOLE_RUN) if len(mine) == len(measured) else _OF_RUN
    if len(mine) < len(measured):
        less = count_of(len(measured) - len(mine), "pair")
        unproven.append(f"why it lacks {less} of run {name}, and what it says of them")
    changed = [field for field in fields if getattr(made, field) != getattr(baseline, field)]
    yield from (f"'{field}' is not what run {name} has" for field in changed)
