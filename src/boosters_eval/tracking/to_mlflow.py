"""MLflow: a parent run, a nested run per competitor. What is already there is looked up on the server."""

from __future__ import annotations

import os
import posixpath
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.tracking.tracker import Tracker, TrackingStatus, short_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boosters_eval.tracking.tracker import TrackedCell, TrackedCompetitor, TrackedEnd, TrackedRun

_EXPERIMENT = "boosters-eval"
_KEY, _CONTENT, _PARENT = "boosters_eval.key", "boosters_eval.content", "mlflow.parentRunId"
_VALUE, _NAME, _BATCH, _PARAMETERS = 500, 250, 1000, 100  # what every version of the server accepts
_STATUS = {
    TrackingStatus.RUNNING: "RUNNING",
    TrackingStatus.FINISHED: "FINISHED",
    TrackingStatus.FAILED: "FAILED",
    TrackingStatus.INTERRUPTED: "KILLED",
}
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
        """The parent, if there is one."""
        self._experiment = self._connect()
        return next(self._search(self._experiment, _KEY, run.key), None)

    def holds(self, run: TrackedRun) -> bool:
        """Whether the parent says so."""
        found = self._find(run)
        return bool(run.content) and found is not None and found.data.tags.get(_CONTENT) == run.content

    def begin(self, run: TrackedRun) -> str:
        """The parent, found by its key or created."""
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
        for start in range(0, len(tags), _PARAMETERS):
            self._client.log_batch(run_id, tags=tags[start : start + _PARAMETERS])

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
        for start in range(0, len(params), _PARAMETERS):
            self._client.log_batch(child.info.run_id, params=params[start : start + _PARAMETERS])
        child.data.params.update(texts)
        names = {"benchmark": competitor.benchmark, "competitor": competitor.competitor}
        self._tag(child.info.run_id, {**names, **competitor.facts})

    def log(self, competitor: TrackedCompetitor, cells: Sequence[TrackedCell]) -> None:
        """Each metric at the step of its cell."""
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
        for start in range(0, len(fresh), _BATCH):
            self._client.log_batch(child.info.run_id, metrics=fresh[start : start + _BATCH])

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
