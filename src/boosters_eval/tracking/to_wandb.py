"""W&B: a run per competitor, in one group with the run of the plan, found again by ids that we give them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import read_text, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.tracking.tracker import Tracker, TrackingStatus, short_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.tracking.tracker import TrackedCell, TrackedCompetitor, TrackedEnd, TrackedRun

_PROJECT = "boosters-eval"
_EXIT = {TrackingStatus.FINISHED: 0, TrackingStatus.FAILED: 2, TrackingStatus.INTERRUPTED: 130}
_STEP = "repeat"  # the axis of all metrics: W&B's own step only grows, but cells end in any order


class WandbState(Model):
    """What was handed to W&B of a run: rows cannot be taken back there, nor, offline, be looked up."""

    schema_version: Literal[1] = 1
    content: str = ""
    cells: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 (frozen) # the keys of the cells, by competitor


class WandbTracker(Tracker):
    """The project of WANDB_PROJECT, by WANDB_MODE online or offline; WANDB_DIR is where its files go."""

    modules: ClassVar[tuple[str, ...]] = ("wandb",)
    install: ClassVar[str] = "pip install 'boosters-eval[tracking]'"

    # By id, in this process: after a fault, and when seeds were added, they are gone on with.
    _open: ClassVar[dict[str, Any]] = {}

    _run: TrackedRun

    def __init__(self, state: Path) -> None:
        names = ("WANDB_MODE", "WANDB_BASE_URL", "WANDB_ENTITY", "WANDB_PROJECT", "WANDB_DIR")
        place = [os.environ.get(name, "") for name in names]  # what was sent to one place is not at another
        super().__init__(state.with_name(f"{state.stem}-{short_digest(place)}{state.suffix}"))

    def _known(self) -> WandbState:
        try:
            return WandbState.model_validate_json(read_text(self.state))
        except BoostersEvalError:  # there is none, or it is not readable: everything is sent
            return WandbState()

    def _keep(self, state: WandbState) -> None:
        self.state.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.state, state.model_dump_json() + "\n", own=True)

    def holds(self, run: TrackedRun) -> bool:
        """Whether all of it was handed over."""
        return bool(run.content) and self._known().content == run.content

    def begin(self, run: TrackedRun) -> str:
        """The run of the plan."""
        self._run = run
        parent = self._opened(run.key, run.name, "plan", run.facts)
        if not parent.offline:
            return str(parent.url)
        files = Path(parent.dir).parent.parent  # .../wandb/offline-run-DATE-ID/files
        return f"offline, to be sent with 'wandb sync {os.path.relpath(files)}/offline-run-*-{run.key}*'"

    def _opened(self, key: str, name: str, job_type: str, config: Mapping[str, str]) -> Any:
        if key in self._open:
            self._open[key].config.update(dict(config), allow_val_change=True)
        else:
            self._open[key] = self._init(key, name, job_type, config)
        return self._open[key]

    def _init(self, key: str, name: str, job_type: str, config: Mapping[str, str]) -> Any:
        import wandb  # noqa: PLC0415 (takes seconds, so only in the tracker's own process)

        return wandb.init(
            project=os.environ.get("WANDB_PROJECT") or _PROJECT,
            id=key,
            name=name,
            group=self._run.key,
            job_type=job_type,
            config=dict(config),
            resume="allow",
            reinit="create_new",
            allow_val_change=True,
            settings=wandb.Settings(  # nothing but what docs/tracking.md lists
                console="off",
                disable_git=True,
                disable_code=True,
                disable_job_creation=True,
                save_code=False,
                host="",
                silent=True,
                x_disable_meta=True,
                x_disable_stats=True,
                x_save_requirements=False,
            ),
        )

    def describe(self, competitor: TrackedCompetitor) -> None:
        """A run of the group."""
        names = {"benchmark": competitor.benchmark, "competitor": competitor.competitor}
        config = {**names, **competitor.parameters, **{f"fact.{name}": text for name, text in competitor.facts.items()}}
        child = self._opened(self._run.id_of(competitor.key), competitor.name, "benchmark", config)
        child.define_metric(_STEP, hidden=True)
        child.define_metric("*", step_metric=_STEP)

    def log(self, competitor: TrackedCompetitor, cells: Sequence[TrackedCell]) -> None:
        """One row per cell; W&B has it on disk before it is sent."""
        state, child = self._known(), self._open[self._run.id_of(competitor.key)]
        there = state.cells.get(competitor.key, ())
        fresh = [cell for cell in cells if cell.key not in there]
        for cell in fresh:
            place = {"seed": cell.seed} if cell.fold is None else {"seed": cell.seed, "fold": cell.fold}
            child.log({**cell.metrics, **place, _STEP: cell.step})
        if fresh:
            keys = (*there, *(cell.key for cell in fresh))
            self._keep(state.replace(cells={**state.cells, competitor.key: keys}))

    def end(self, run: TrackedRun, ending: TrackedEnd) -> None:
        """The means as the summary; the files as an artifact of the plan's run."""
        import wandb  # noqa: PLC0415

        for key, close in ending.competitors.items():
            child = self._open.pop(self._run.id_of(key))
            child.summary.update({f"mean.{name}": value for name, value in close.means.items()})
            child.summary.update({"cells": close.cells, "failures": dict(close.failures)})
            child.finish(exit_code=_EXIT[close.status])
        parent = self._open.pop(run.key)
        if ending.files:
            artifact = wandb.Artifact(f"run-{run.key}", type="results")
            for name, path in ending.files.items():
                artifact.add_file(str(path), name=name)
            parent.log_artifact(artifact)
        parent.summary.update({"status": ending.status.value})
        parent.finish(exit_code=_EXIT[ending.status])
        self._keep(self._known().replace(content=run.content))
