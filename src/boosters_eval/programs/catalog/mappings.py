"""The mapping of each library: the parameters that it is given, and how exactly they match the canonical ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.benchmarks import find_competitors, parse_boosters
from boosters_eval.programs.benchmark.compare import read_training
from boosters_eval.programs.benchmark.targets import for_targets
from boosters_eval.reports.document import Block, Card, Document, Paragraph, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.runners import RUNNERS, FitRequest
from boosters_eval.runners.base import Runner, find_device_fault
from boosters_eval.runners.config import SeveralTargets, parse_member
from boosters_eval.runners.parameters import Profile
from boosters_eval.runners.rules import CANONICAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.programs.catalog.request import ExplainRequest


def explain(request: ExplainRequest) -> Mappings:
    named = find_competitors(request.libraries, None)
    every = RUNNERS.values() if named is None else list(named.values())
    task, training = Task(request.task), read_training(request)
    several = request.targets > 1 and task is Task.REGRESSION
    make: Callable[..., FitRequest] = partial(SeveralTargets, n_targets=request.targets) if several else FitRequest
    records = []
    for kind in parse_boosters(request.booster):
        fit = make(
            task=task,
            training=training,
            booster_type=kind,
            profile=parse_member("profile", request.profile, Profile),
            n_classes={Task.BINARY: 2, Task.MULTICLASS: request.classes}.get(task),
            quantiles=tuple(request.quantiles) if task is Task.QUANTILE else (),
            categorical=tuple(request.categorical),
            has_missing=request.missing,
            weighted=request.weighted,
            n_threads=request.threads,
            seed=training.seed,
        )
        records += [_record(for_targets(runner, fit, request.targets if several else 1), fit) for runner in every]
    return Mappings(tuple(records), request)


@dataclass(frozen=True)
class Mappings(ReportedFindings):
    """The mapping of each library and booster, as plain values."""

    plain: ClassVar[bool] = True
    records: tuple[dict[str, Any], ...]
    request: ExplainRequest

    def document(self) -> Document:
        boosters = dict.fromkeys(record["booster"] for record in self.records)
        groups = [[record for record in self.records if record["booster"] == booster] for booster in boosters]
        cards = map(_compare, groups) if self.request.every else map(_describe, self.records)
        return Document("Mapping", sections=(Section("mappings", "", tuple(cards), search="Filter parameters"),))

    def to_model(self) -> Any:
        alone = not self.request.every and len(self.records) == 1
        return self.records[0] if alone else list(self.records)


def _record(runner: type[Runner], request: FitRequest) -> dict[str, Any]:
    """Everything that is known without running anything, as plain values."""
    record: dict[str, Any] = {
        "library": runner.name,
        "version": runner.version(),
        "installed": runner.missing() is None,
        "booster": request.booster_type.value,
        "task": request.task.value,
        "profile": request.profile.value,
        "device": request.training.device.value,
        "not_here": None,  # the mapping is shown even where the device is missing
        "unsupported": runner.unsupported(request),
        "nondeterministic": None,
        "native": {},
        "origins": {},
        "marks": {},
    }
    if record["unsupported"] is not None:
        return record
    translation = runner.translate(request)
    marks: dict[str, dict[str, str]] = {name: {"mark": "not used", "reason": ""} for name in CANONICAL}
    marks |= {mark.parameter: {"mark": mark.kind, "reason": mark.reason} for mark in translation.marks}
    return record | {
        "not_here": find_device_fault(runner, request.training.device),
        "nondeterministic": translation.nondeterministic,
        "native": translation.native,
        "origins": translation.origins,
        "marks": marks,
    }


def _way(record: dict[str, Any]) -> str:
    device = "" if record["device"] == "cpu" else f", device {record['device']}"
    return f"{record['booster']}, {record['task']}, profile {record['profile']}{device}"


def _describe(record: dict[str, Any]) -> Card:
    """All that is known of one library: its parameters, and how each canonical one is mapped."""
    title = f"{record['library']} {record['version'] or 'not installed'}: {_way(record)}"
    if record["unsupported"] is not None:
        return Card(title, (Paragraph(f"Unsupported: {record['unsupported']}."),))
    native = tuple((name, repr(value), record["origins"].get(name, "")) for name, value in record["native"].items())
    blocks: list[Block] = [PlainTable("Native parameters", ("native parameter", "value", "because of"), native)]
    if record["profile"] == "defaults":
        blocks.append(Paragraph("The library runs with its own defaults: no parameters are passed except those above."))
    else:
        marks = tuple((name, mark["mark"], mark["reason"]) for name, mark in record["marks"].items())
        blocks.append(PlainTable("Canonical parameters", ("canonical parameter", "mark", "reason"), marks))
    said = {"Nondeterministic": record["nondeterministic"], "Not here": record["not_here"]}
    return Card(title, (*blocks, *(Paragraph(f"{word}: {reason}.") for word, reason in said.items() if reason)))


def _compare(records: list[dict[str, Any]]) -> Card:
    """One table of marks for all libraries, with the reasons below it."""
    names = dict.fromkeys(name for record in records for name in record["marks"])
    columns = [f"{record['library']} {record['version'] or ''}".strip() for record in records]
    rows = tuple((name, *(record["marks"].get(name, {}).get("mark") for record in records)) for name in names)
    reasons = [
        (record["library"], name, mark["mark"], mark["reason"])
        for record in records
        for name, mark in record["marks"].items()
        if mark["reason"]
    ]
    for key in ("unsupported", "nondeterministic", "not_here"):
        reasons += [(r["library"], "(all)", key.replace("_", " "), r[key]) for r in records if r[key]]
    return Card(
        _way(records[0]),
        (
            PlainTable("Marks", ("canonical parameter", *columns), rows),
            PlainTable("Reasons", ("library", "parameter", "mark", "reason"), tuple(reasons), keys=2),
        ),
    )
