"""Is a baseline what was recorded? Its own digest, the predictions beside it, and the sealed runs that it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError, FileFormatError, RunError
from boosters_eval.core.files import find_home, load_json, read_text
from boosters_eval.core.text import count_of
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.runs import load_verified
from boosters_eval.programs.baseline.model import digest_content, load_baseline
from boosters_eval.programs.baseline.sidecar import PredictionsFile, list_kept, locate_sidecar
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.programs.baseline.model import Baseline, BaselineResult, Source


@dataclass(frozen=True)
class BaselineAudit:
    """What of a baseline is not what was recorded, and what nobody could check."""

    faults: tuple[str, ...]
    unchecked: tuple[str, ...]


def audit_baseline(path: Path, home: Path | None = None) -> BaselineAudit:
    """Compare a baseline with all that vouches for it, as far as it can be reached."""
    baseline = load_baseline(path)
    raw: dict[str, Any] = load_json(read_text(path), str(path))
    faults: list[str] = []
    unchecked: list[str] = []
    if raw.get("digest") is None:
        unchecked.append("it has no digest of its own")
    elif digest_content(raw) != raw["digest"]:
        faults.append("it was changed after it was recorded: its digest is another one")
    _compare_predictions(baseline, locate_sidecar(path), faults, unchecked)
    alone = sum(result.source is None for result in baseline.results)
    if alone:
        unchecked.append(f"{count_of(alone, 'pair')} name no run that they were recorded from")
    for name, source in baseline.sources.items():
        results = [result for result in baseline.results if result.source == name]
        folder = RunFolder(find_home(home) / "runs" / source.run_id)
        if source.attempt in folder.attempts():
            faults += _compare_with_run(results, source, folder)
        else:
            unchecked.append(f"run {name}, which {count_of(len(results), 'pair')} came from, is not in this home")
    return BaselineAudit(tuple(faults), tuple(unchecked))


def _compare_predictions(baseline: Baseline, place: Path, faults: list[str], unchecked: list[str]) -> None:
    named = list_kept(baseline)
    if not place.exists():
        if named:
            unchecked.append(f"{place.name} with its predictions is not there")
        return
    try:
        file = PredictionsFile(place)
        missing = [digest for digest in named if file.find(digest) is None]
    except FileFormatError as error:
        faults.append(str(error).rstrip("."))
        return
    if missing:
        unchecked.append(f"{place.name} lacks {len(missing)} of {count_of(len(named), 'array')}")
    if foreign := file.digests - set(named):
        faults.append(f"{place.name} has {count_of(len(foreign), 'array')} that the baseline does not name")


def _compare_with_run(results: list[BaselineResult], source: Source, folder: RunFolder) -> Iterator[str]:
    """What the sealed run says otherwise."""
    try:
        run = load_verified(folder, source.attempt)
    except (RunError, BoostersEvalError) as error:
        yield str(error).rstrip(".")
        return
    if run.digest != source.journal:
        yield f"it names another journal than that of run {source.run_id}/{source.attempt}"
        return
    fits = {
        (one.config_name, one.library, one.repeat.name): one
        for one in run.outcomes.values()
        if isinstance(one, BenchmarkResult)
    }
    for result in results:
        for metric, stats in result.metrics.items():
            for cell, value in stats.per_seed.items():
                fit = fits.get((result.config, result.library, cell))
                if fit is None or fit.metrics.get(metric) != value:
                    where = f"{result.config} {result.library}, cell {cell}"
                    yield f"{metric} of {where} is not what run {source.run_id} measured"
                    return
        for cell, known in result.fits.items():
            fit = fits.get((result.config, result.library, cell))
            if fit is None or fit.predictions_digest != known.predictions:
                yield f"the predictions of {result.config} {result.library}, cell {cell}, are not those of its run"
                return
