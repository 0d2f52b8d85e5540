"""Data sets are downloaded, described, and given a file that says how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.saying import tell
from boosters_eval.core.terms import given
from boosters_eval.datasets import DATASETS, materialize, resolve_dataset
from boosters_eval.datasets.catalog import fetch_dataset
from boosters_eval.datasets.config import DataSettings, parse_split
from boosters_eval.datasets.files import examine_file
from boosters_eval.datasets.resolve import SUFFIXES, check_applicable, split_item
from boosters_eval.datasets.sidecar import sidecar_path, sidecar_text
from boosters_eval.datasets.summary import audit_text, plot, summarize
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.compare import data_of

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.datasets.summary import DatasetSummary
    from boosters_eval.programs.datasets.request import FetchRequest, InitDatasetRequest, ShowDatasetRequest


def fetch(request: FetchRequest) -> FetchedDatasets:
    """Download data sets into the cache."""
    places: dict[str, Path] = {}
    for config in [DATASETS[name] for name in request.names]:
        if fetch_dataset(config) is None:
            tell(f"{config.name} needs no download.")
            continue
        stored = materialize(config)
        places[config.name] = stored.path
        tell(f"{config.name}: {stored.n_samples} rows, {stored.n_features} columns, kept in {stored.path}")
    return FetchedDatasets(places)


@dataclass(frozen=True)
class FetchedDatasets(Findings):
    """Where the data sets are kept that were downloaded; each was told of as it came."""

    places: dict[str, Path]

    def show(self, screen: Screen) -> None:
        """Nothing is left to be said."""


def show(request: ShowDatasetRequest) -> DescribedDataset:
    """What a data set contains."""
    settings = data_of(request)
    if settings is not None:
        check_applicable(settings, [request.name])
    config = resolve_dataset(request.name, _task(request.task), settings, request.split)
    if request.split is not None:
        config = config.replace(split_by=request.split if parse_split(request.split) else None)
    return DescribedDataset(summarize(config), tuple(config.notes), json=request.json)


@dataclass(frozen=True)
class DescribedDataset(Findings):
    """The facts of a data set, its audit, and the distribution of its target."""

    summary: DatasetSummary
    notes: tuple[str, ...] = ()
    json: bool = False

    def show(self, screen: Screen) -> None:
        """Facts, audit and a plot; what the audit says is not noted again."""
        lines = audit_text(self.summary.audit)
        shown_below = set() if self.json else {line.strip() for line in lines}
        for sentence in self.notes:
            if sentence not in shown_below:
                screen.note(f"Note: {sentence}")
        if self.json:
            screen.json(self.record())
            return
        shown = {key: _text(value) for key, value in self.summary.facts.items()}
        width = max(map(len, shown))
        for key, value in shown.items():
            if value:
                screen.say(f"{key:<{width}}  {value}")
        screen.say("\naudit\n" + "\n".join(lines))
        screen.say("\ntarget distribution\n" + plot(self.summary.bars))

    def record(self) -> dict[str, Any]:
        """The same as plain data."""
        bars = [{"label": bar.label, "count": bar.count} for bar in self.summary.bars]
        audit = self.summary.audit.model_dump(mode="json")
        return {**self.summary.facts, "target distribution": bars, "audit": audit}


def init(request: InitDatasetRequest) -> WrittenSettings:
    """Write what was found in a data file beside it."""
    path, target = split_item(request.file)
    if not target:
        raise ConfigError(
            f"A data file must be written 'path:column' and end in {', '.join(SUFFIXES)}. Got '{request.file}' instead."
        )
    settings = data_of(request) or DataSettings()
    check_applicable(settings, [request.file])
    out = sidecar_path(Path(path))
    if out.exists() and not request.force:
        raise ConfigError(f"{out} exists already: use {given('force')} to replace it.")
    found = examine_file(Path(path), target, _task(request.task), settings, parse_split(request.split))
    for sentence in found.notes:
        tell(f"Note: {sentence}")
    write_atomically(out, sidecar_text(Path(path).name, target, found, settings))
    return WrittenSettings(path, out)


@dataclass(frozen=True)
class WrittenSettings(Findings):
    """The file that says how a data file is read."""

    file: str
    path: Path

    def show(self, screen: Screen) -> None:
        """Where it is."""
        screen.note(f"Wrote {self.path}. From now on '{self.file}' is enough to name this data set.")


def _task(name: str | None) -> Task | None:
    return None if name is None else Task(name)


def _text(value: Any) -> str:
    if value is None or value is False or value == []:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:.6g}" for key, number in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "yes" if value is True else str(value)
