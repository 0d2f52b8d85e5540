"""The trackers for MLflow and W&B.

MLflow has a parent run and a nested run per competitor; what is there already is looked up on the server. W&B has a run
per competitor, in one group with the run of the plan, found again by ids that we give them.
"""

from __future__ import annotations

import os
import posixpath
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import read_text, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.tracking.tracker import Tracker, TrackingStatus, short_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boosters_eval.tracking.tracker import TrackedCell, TrackedCompetitor, TrackedEnd, TrackedRun


_EXPERIMENT = "boosters-eval"
_KEY, _CONTENT, _PARENT = "boosters_eval.key", "boosters_eval.content", "mlflow.parentRunId"
_VALUE, _NAME, _BATCH, _PARAMETERS = 500, 250, 1000, 100  # what every version of the server accepts
_STATUS = {**{status: status.name for status in TrackingStatus}, TrackingStatus.INTERRUPTED: "KILLED"}
# A server that is gone is to be known in seconds; whoever set these wants something else.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",  # only what was asked for is sent, to where it was asked for
}


class MlflowTracker(Tracker):
    """The server or store of MLFLOW_TRACKING_URI, in the experiment of MLFLOW_EXPERIMENT_NAME."""

    modules: ClassVar[tuple[str, ...]] = ("mlflow",)
    install: ClassVar[str] = "pip install 'boosters-eval[tracking]'"

    _client: Any
    _experiment: str
    _run: TrackedRun
    _id: str  # of the parent
    _children: dict[str, Any]  # by the competitor's id
    _steps: dict[tuple[str, str], set[int]]  # that a child has of a metric

    @classmethod
    def missing(cls) -> str:
        """The package, or a place to send to: mlflow-skinny has no database of its own."""
        if gone := super().missing():
            return gone
        if not os.environ.get("MLFLOW_TRACKING_URI") and find_spec("sqlalchemy") is None:
            return "needs a server: set MLFLOW_TRACKING_URI, or install its own database with 'pip install mlflow'."
        return ""

    def _connect(self) -> str:
        """The experiment's id."""
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient  # noqa: PLC0415 (takes seconds, so only in the tracker's own process)

        self._client = MlflowClient()
        if given := os.environ.get("MLFLOW_EXPERIMENT_ID"):
            return given
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or _EXPERIMENT
        found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self._client.create_experiment(name))

    def _search(self, experiment: str, tag: str, value: str) -> Iterator[Any]:
        token = None
        while True:
            page = self._client.search_runs([experiment], f"tags.`{tag}` = '{value}'", page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _find(self, run: TrackedRun) -> Any:
        self._experiment = self._connect()
        return next(self._search(self._experiment, _KEY, run.key), None)

    def holds(self, run: TrackedRun) -> bool:
        found = self._find(run)
        return bool(run.content) and found is not None and found.data.tags.get(_CONTENT) == run.content

    def begin(self, run: TrackedRun) -> str:
        found = self._find(run)
        self._run, self._children, self._steps = run, {}, {}
        if found is None:
            tags = {_KEY: run.key, "mlflow.runName": run.name[:_NAME], "mlflow.source.name": "boosters-eval"}
            found = self._client.create_run(self._experiment, start_time=_milliseconds(run.started), tags=tags)
        else:
            self._client.update_run(found.info.run_id, status="RUNNING", name=run.name[:_NAME])
            for child in self._search(self._experiment, _PARENT, found.info.run_id):
                self._children[child.data.tags.get(_KEY)] = child
        self._id = found.info.run_id
        self._tag(self._id, run.facts)
        uri = os.environ.get("MLFLOW_TRACKING_URI", "")
        page = f"{uri.rstrip('/')}/#/experiments/{self._experiment}/runs/{self._id}"
        return page if uri.startswith("http") else f"run {self._id} in {uri or 'the local store of MLflow'}"

    def _tag(self, run_id: str, facts: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag  # noqa: PLC0415

        texts = _accepted({f"boosters_eval.{name}": text for name, text in facts.items()})
        if "commit" in facts:
            texts["mlflow.source.git.commit"] = facts["commit"]
        tags = [RunTag(name, text) for name, text in texts.items()]
        self._log_in_batches(run_id, _PARAMETERS, tags=tags)

    def describe(self, competitor: TrackedCompetitor) -> None:
        """A nested run; parameters that it has are left alone, as the server would refuse to change them."""
        from mlflow.entities import Param  # noqa: PLC0415

        key = self._run.id_of(competitor.key)
        child = self._children.get(key)
        if child is None:
            tags = {_KEY: key, _PARENT: self._id, "mlflow.runName": competitor.name[:_NAME]}
            child = self._client.create_run(self._experiment, start_time=_milliseconds(self._run.started), tags=tags)
            self._children[key] = child
        elif child.info.status != "RUNNING":
            self._client.update_run(child.info.run_id, status="RUNNING")
        texts = _accepted(competitor.parameters)
        params = [Param(name, text) for name, text in texts.items() if name not in child.data.params]
        self._log_in_batches(child.info.run_id, _PARAMETERS, params=params)
        child.data.params.update(texts)
        names = {"benchmark": competitor.benchmark, "competitor": competitor.competitor}
        self._tag(child.info.run_id, {**names, **competitor.facts})

    def log(self, competitor: TrackedCompetitor, cells: Sequence[TrackedCell]) -> None:
        numbers = [(name, value, cell.step) for cell in cells for name, value in cell.metrics.items()]
        self._metrics(self._children[self._run.id_of(competitor.key)], numbers)

    def _metrics(self, child: Any, numbers: list[tuple[str, float, int]]) -> None:
        from mlflow.entities import Metric  # noqa: PLC0415

        at = _milliseconds(self._run.started)  # the same each time, so that a value that is sent again is the same
        names, fresh = accept_names(name for name, _, _ in numbers), []
        for name, value, step in numbers:
            there = self._there(child, names[name])
            if step not in there:
                fresh.append(Metric(names[name], value, at, step))
                there.add(step)
        self._log_in_batches(child.info.run_id, _BATCH, metrics=fresh)

    def _log_in_batches(self, run_id: str, size: int, **items: list[Any]) -> None:
        for name, found in items.items():
            for start in range(0, len(found), size):
                self._client.log_batch(run_id, **{name: found[start : start + size]})

    def _there(self, child: Any, metric: str) -> set[int]:
        """The steps at which a competitor already has a metric; one that was created just now has none."""
        where = (child.info.run_id, metric)
        if where not in self._steps:
            known = self._client.get_metric_history(*where) if metric in child.data.metrics else []
            self._steps[where] = {each.step for each in known}
        return self._steps[where]

    def end(self, run: TrackedRun, ending: TrackedEnd) -> None:
        """The means as metrics of their own, at the step that is their number of cells; the files at the parent."""
        at = _milliseconds(ending.ended)
        for key, close in ending.competitors.items():
            child = self._children[self._run.id_of(key)]
            self._metrics(child, [(f"mean.{name}", value, close.cells) for name, value in close.means.items()])
            failures = "; ".join(f"{repeat}: {reason}" for repeat, reason in close.failures.items())
            self._tag(child.info.run_id, {"cells": str(close.cells), "failures": failures})
            self._client.set_terminated(child.info.run_id, _STATUS[close.status], at)
        for path in ending.files.values():
            self._client.log_artifact(self._id, str(path))
        if run.content:
            self._client.set_tag(self._id, _CONTENT, run.content)
        self._client.set_terminated(self._id, _STATUS[ending.status], at)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _accepted(values: Mapping[str, str]) -> dict[str, str]:
    """What MLflow accepts; the results file has long values whole."""
    names = accept_names(values)
    return {names[name]: text if len(text) <= _VALUE else f"{text[: _VALUE - 3]}..." for name, text in values.items()}


def accept_names(given: Iterable[str]) -> dict[str, str]:
    """Each name as MLflow accepts it: f1@0.3 is f1_0.3. Those that would be lost in another one get a digest."""
    names = dict.fromkeys(given)
    taken = {name for name in names if _name(name) == name}
    found = {}
    for name in names:
        text = _name(name)
        if len(text) > _NAME or (text != name and text in taken):
            text = f"{text[: _NAME - 13]}-{short_digest(name)}"
        taken.add(text)
        found[name] = text
    return found


def _name(name: str) -> str:
    """Without the characters, and the paths, that MLflow refuses."""
    text = re.sub(r"[^\w.\-/ ]", "_", name)
    return text if posixpath.normpath(text) == text else text.replace("/", "_")


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
        return bool(run.content) and self._known().content == run.content

    def begin(self, run: TrackedRun) -> str:
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
