"""After something got worse: since when it is so, as far as this home knows, and the commands that are of use now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from boosters_eval.core.distributions import normalized
from boosters_eval.core.errors import ConfigError
from boosters_eval.engine.cell import Outcome, make_key
from boosters_eval.programs.baseline.findings import UNNAMED, Status
from boosters_eval.programs.benchmark.earlier import read_earlier
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.sources import find_project, list_commits
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.engine.cell import Build
    from boosters_eval.engine.folder import Run
    from boosters_eval.programs.baseline.findings import Check, Finding
    from boosters_eval.programs.baseline.model import BaselineResult
    from boosters_eval.programs.baseline.snapshot import TakenBaseline
    from boosters_eval.programs.benchmark.results import ResultCollection

_WORSE = (Status.REGRESSION, Status.UNDECIDED, Status.DRIFT)


def follow_up(check: Check, taken: TakenBaseline, results: ResultCollection, home: Path | None) -> Check:
    """The check with since when each pair is worse, and what to do next."""
    worse = [finding for finding in check.findings if finding.counts and finding.status in _WORSE]
    if not worse:
        return check
    recorded = {result.key: result for result in taken.baseline.results}
    dated = {(f.config, f.library): _date(f, recorded[f.config, f.library], results, home) for f in worse}
    findings = tuple(replace(f, since=dated.get((f.config, f.library), "")) for f in check.findings)
    following = [*_bisections(worse, taken, results, recorded), *_acceptance(worse, check, results)]
    return replace(check, findings=findings, next=tuple(following))


def _date(finding: Finding, then: BaselineResult, results: ResultCollection, home: Path | None) -> str:
    """Since which run it predicts what it predicts now, and which one last predicted what was recorded."""
    now = {
        result.key: result.predictions_digest
        for result in results.results
        if (result.config_name, result.library) == (finding.config, finding.library)
    }
    old = {
        make_key(finding.config, finding.library, result.seed, result.fold): fit.predictions
        for result in results.results
        if (result.config_name, result.library) == (finding.config, finding.library)
        and (fit := then.fits.get(result.repeat.name)) is not None
    }
    first: Run | None = None
    itself = f"{results.run_id}/{results.metadata.attempt or 1}"
    for run in read_earlier(home, lambda plan: bool(now.keys() & set(plan.keys)), before=itself):
        seen = _predictions(run)
        if _agree(seen, now):
            first = run
        elif _agree(seen, old):
            since = f"since run {_tell(first)}" if first else "new in this run"
            return f"{since}; run {_tell(run)} still predicted as recorded"
    return f"since run {_tell(first)} at least" if first else ""


def _predictions(run: Run) -> dict[str, str | None]:
    fits = (outcome for outcome in run.outcomes.values() if isinstance(outcome, Outcome))
    return {fit.key: fit.predictions_digest for fit in fits if isinstance(fit, BenchmarkResult)}


def _agree(seen: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> bool:
    shared = [key for key in wanted if key in seen]
    return bool(shared) and all(wanted[key] is not None and seen[key] == wanted[key] for key in shared)


def _tell(run: Run) -> str:
    sha = run.facts.git_sha
    return f"{run.plan.run_id} ({run.facts.started_at[:16].replace('T', ' ')}{f', commit {sha}' if sha else ''})"


def _bisections(
    worse: list[Finding],
    taken: TakenBaseline,
    results: ResultCollection,
    recorded: Mapping[tuple[str, str], BaselineResult],
) -> list[str]:
    """How to find the version or commit, once per library, with the data set that shows it best."""
    commands = []
    by_library: dict[str, Finding] = {}
    for finding in sorted(worse, key=lambda finding: finding.p_value if finding.p_value is not None else 1.0):
        by_library.setdefault(finding.library, finding)
    good, bad = taken.baseline.git_sha, results.metadata.facts.git_sha
    for library, finding in by_library.items():
        between = f"--versions {quote('..'.join(finding.upgrade))}" if finding.upgrade else ""
        then = recorded[finding.config, finding.library]
        before, first = then.build, ""
        now = results.metadata.facts.targets.get(library)
        if not between and good and bad and good != bad and _has_commits(before, library, f"{good}..{bad}"):
            between = f"--folder . --commits {quote(f'{good}..{bad}')}"
        elif not between and before is not None and now is not None and before.digest != now.digest:
            first, between = f"with the sources of {library}: ", "--folder SOURCES --commits GOOD..BAD"
        if not between:
            continue
        training = _training(results.metadata.configs.get(finding.config, {}))
        asked = f" --param {' '.join(map(quote, training))}" if training else ""
        about = f"--library {quote(library)} --dataset {quote(then.dataset or finding.config.partition('/')[0])}"
        commands.append(f"{first}boosters-eval bisect {about} --metric {quote(finding.metric)} {between}{asked}")
    return commands


def _has_commits(build: Build | None, label: str, commits: str) -> bool:
    """Whether these are commits of the library in this folder, and not of what only uses it."""
    library = (build.library if build else None) or label
    if library not in RUNNERS or find_project(Path()) not in [*map(normalized, RUNNERS[library].distributions)]:
        return False
    with suppress(ConfigError):
        return bool(list_commits(Path(), commits))
    return False


def _training(config: Mapping[str, Any]) -> list[str]:
    """The canonical parameters of a config that are not the usual ones, as `--param` takes them."""
    usual = TrainingConfig().model_dump(mode="json")
    return [
        f"{name}={value}"
        for name, value in config.items()
        if name in usual and name not in ("seed", "n_threads") and value != usual[name] and value is not None
    ]


def _acceptance(worse: list[Finding], check: Check, results: ResultCollection) -> list[str]:
    """How to make it the new baseline, where that is intended."""
    worse = [finding for finding in worse if finding.fails]
    if not any(finding.status is Status.REGRESSION for finding in worse) or check.name == UNNAMED:
        return []
    run = f" --run {results.reference}" if results.folder is not None else ""
    libraries = "".join(f" --library {quote(name)}" for name in dict.fromkeys(f.library for f in worse))
    return [f"if it is intended: boosters-eval baseline update {quote(check.name)}{run}{libraries} --accept 'WHY'"]
