"""Data sets are downloaded, described, and given a file that says how they are read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings, Screen
from boosters_eval.core.terms import given, tell
from boosters_eval.datasets import DATASETS, materialize, resolve_dataset
from boosters_eval.datasets.catalog import fetch_dataset
from boosters_eval.datasets.config import DataAudit, DatasetConfig, DataSettings, Table, parse_split
from boosters_eval.datasets.resolve import SUFFIXES, check_applicable, split_item
from boosters_eval.datasets.store import load_audit, open_stored
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.compare import read_data_settings
from boosters_eval.programs.benchmark.suites import SUITES
from boosters_eval.reports.document import Code, Document, Listing, Paragraph, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boosters_eval.programs.catalog.request import FetchRequest, InitDatasetRequest, ShowDatasetRequest


_BINS = 10
_MOST_CLASSES = 20  # classes beyond these share one bar
_WIDTH = 40


@dataclass(frozen=True)
class Bar:
    label: str
    count: int


def show_dataset(request: ShowDatasetRequest) -> DescribedDataset:
    """Load a data set, from the cache where possible, and describe it."""
    settings = read_data_settings(request)
    if settings is not None:
        check_applicable(settings, [request.name])
    config = resolve_dataset(request.name, _task(request.task), settings, request.split)
    if request.split is not None:
        config = config.replace(split_by=request.split if parse_split(request.split) else None)
    stored = materialize(config)
    table = open_stored(stored.path)
    names = stored.feature_names or tuple(f"column {i}" for i in range(stored.n_features))
    facts = {
        "name": config.name,
        "task": config.task.value,
        "rows": stored.n_samples,
        "columns": stored.n_features,
        "classes": stored.n_classes,
        "queries": stored.n_groups,
        "missing values": int(np.isnan(table.x).sum()),
        "categorical": [names[position] for position in stored.categorical],
        "weights": stored.weighted,
        "official split": table.split is not None,
        "quantiles": list(config.quantiles),
        "target": _target_facts(config, table),
        "description": config.description,
        "source": config.source,
        "license": config.license,
        "citation": config.citation,
        "changed": config.changed,
        "split": config.split_by or "",
        "digest": stored.digest,
        "kept in": str(stored.path),
    }
    audit = load_audit(config, stored)
    bars = tuple(bar for name, y in _each_target(config, table) for bar in _bars(config.task, y, audit, name))
    return DescribedDataset(facts, bars, audit, tuple(config.notes), json=request.json)


def _each_target(config: DatasetConfig, table: Table) -> list[tuple[str, NDArray[np.float64]]]:
    """The values of each of several targets, with its name; of one, without."""
    y = np.asarray(table.y)
    return [("", y)] if y.ndim == 1 else [(f"{name} ", one) for name, one in zip(config.targets, y.T, strict=True)]


def _target_facts(config: DatasetConfig, table: Table) -> dict[str, float]:
    if config.task.is_classification:
        return {"largest class": float(np.bincount(table.y.astype(np.int64)).max() / len(table.y))}
    found: dict[str, float] = {}
    for name, y in _each_target(config, table):
        facts = {"mean": y.mean(), "sd": y.std(ddof=1), "min": y.min(), "max": y.max()}
        found |= {f"{name}{fact}": float(value) for fact, value in facts.items()}
    return found


def _bars(task: Task, y: NDArray[np.float64], audit: DataAudit, name: str = "") -> list[Bar]:
    if task.is_classification or task is Task.RANKING:
        values, counts = np.unique(y, return_counts=True)
        labels = [f"{value:g}" for value in values]
        if task.is_classification and len(audit.classes) == len(labels):  # by their names, in the order of their codes
            labels = [_one_line(name) for name in audit.classes]
        bars = [Bar(label, int(count)) for label, count in zip(labels, counts, strict=True)]
        rest = sum(bar.count for bar in bars[_MOST_CLASSES:])
        return [*bars[:_MOST_CLASSES], *([Bar("others", rest)] if rest else [])]
    counts, edges = np.histogram(y, bins=_BINS)
    spans = zip(edges, edges[1:], counts, strict=False)
    return [Bar(f"{_one_line(name)}{low:.4g} .. {high:.4g}", int(n)) for low, high, n in spans]


def _plot(bars: tuple[Bar, ...]) -> str:
    """The bars as lines of plain ASCII; every bar that is not empty has at least one mark."""
    most = max(bar.count for bar in bars)
    left, right = max(len(bar.label) for bar in bars), len(str(most))
    lines = []
    for bar in bars:
        length = max(round(_WIDTH * bar.count / most), 1 if bar.count else 0)
        lines.append(f"{bar.label:>{left}}  {bar.count:>{right}}  {'#' * length}".rstrip())
    return "\n".join(lines)


def _audit_lines(audit: DataAudit) -> list[str]:
    """The audit in full, as lines: the data set, its columns by what they are used as, and the findings."""
    lines = [audit.headline]
    for role, names in audit.by_role().items():
        lines.append(f"{role}: {', '.join(map(_one_line, names))}")
    found = {finding.column for finding in audit.findings}
    for column in audit.columns:
        if column.note and column.name not in found:
            named = f"'{column.name}'" in column.note
            lines.append(column.note if named else f"{column.name}: {column.note}")
    lines += [f"! {finding}" for finding in audit.findings] or ["nothing suspicious"]
    return [_one_line(line) for line in lines]


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def fetch_datasets(request: FetchRequest) -> FetchedDatasets:
    places: dict[str, Path] = {}
    wanted = [DATASETS[name] for name in request.names]
    if request.suite is not None:
        wanted = [config.dataset for config in SUITES[request.suite].configs]
    for config in wanted:
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


@dataclass(frozen=True)
class DescribedDataset(ReportedFindings):
    """The facts of a data set, the distribution of its target, and its audit."""

    plain: ClassVar[bool] = True
    facts: dict[str, Any]  # in the order in which they are shown
    bars: tuple[Bar, ...]
    audit: DataAudit
    notes: tuple[str, ...] = ()
    json: bool = False

    def document(self) -> Document:
        facts = {name: _text(value) for name, value in self.facts.items()}
        headline, *lines = _audit_lines(self.audit)
        return Document(
            f"Data set {self.facts['name']}",
            sections=(
                Section("facts", "", (PlainTable.of_facts("Facts", facts),), short="Facts"),
                Section("audit", "Audit", (Paragraph(headline), Listing.of(*lines))),
                Section("target", "Target Distribution", (Code(_plot(self.bars)),)),
            ),
        )

    def to_model(self) -> dict[str, Any]:
        bars = [asdict(bar) for bar in self.bars]
        return {**self.facts, "target distribution": bars, "audit": self.audit.model_dump(mode="json")}

    def show(self, screen: Screen) -> None:
        """Notes too, except those that the audit shows."""
        shown = () if self.json else _audit_lines(self.audit)
        for sentence in self.notes:
            if sentence not in shown:
                screen.note(f"Note: {sentence}")
        if self.json:
            screen.json(self.to_model())
        else:
            super().show(screen)


def write_settings(request: InitDatasetRequest) -> WrittenSettings:
    """Write what was found in a data file beside it."""
    from boosters_eval.datasets.files import examine_file, format_sidecar, sidecar_path  # noqa: PLC0415 (loads pandas)

    path, target = split_item(request.file)
    if not target:
        raise ConfigError(
            f"A data file must be written 'path:column' and end in {', '.join(SUFFIXES)}. Got '{request.file}' instead."
        )
    settings = read_data_settings(request) or DataSettings()
    check_applicable(settings, [request.file])
    out = sidecar_path(Path(path))
    if out.exists() and not request.force:
        raise ConfigError(f"{out} exists already: use {given('force')} to replace it.")
    found = examine_file(Path(path), target, _task(request.task), settings, parse_split(request.split))
    for sentence in found.notes:
        tell(f"Note: {sentence}")
    write_atomically(out, format_sidecar(Path(path).name, target, found, settings))
    return WrittenSettings(path, out)


@dataclass(frozen=True)
class WrittenSettings(Findings):
    file: str
    path: Path

    def show(self, screen: Screen) -> None:
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
