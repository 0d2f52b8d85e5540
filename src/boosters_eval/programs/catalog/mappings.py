"""The mapping of each library: the parameters that it is given, and how exactly they match the canonical ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boosters_eval.core.findings import Findings
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.benchmarks import find_competitors, parse_boosters
from boosters_eval.programs.benchmark.compare import read_training
from boosters_eval.runners import RUNNERS, FitRequest
from boosters_eval.runners.base import find_device_fault
from boosters_eval.runners.config import parse_member
from boosters_eval.runners.parameters import Profile
from boosters_eval.runners.rules import CANONICAL

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.catalog.request import ExplainRequest
    from boosters_eval.runners.base import Runner


def explain(request: ExplainRequest) -> Mappings:
    named = find_competitors(request.libraries, None)
    every = RUNNERS.values() if named is None else list(named.values())
    task, training = Task(request.task), read_training(request)
    records = []
    for kind in parse_boosters(request.booster):
        fit = FitRequest(
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
        records += [_record(runner, fit) for runner in every]
    return Mappings(tuple(records), request)


@dataclass(frozen=True)
class Mappings(Findings):
    """The mapping of each library and booster, as plain values."""

    records: tuple[dict[str, Any], ...]
    request: ExplainRequest

    def show(self, screen: Screen) -> None:
        if self.request.json:
            alone = not self.request.every and len(self.records) == 1
            screen.json(self.records[0] if alone else list(self.records))
        elif self.request.every:
            _show_all(self.records, screen)
        else:
            for record in self.records:
                _show_one(record, screen)


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


def _title(record: dict[str, Any]) -> str:
    version = record["version"] or "not installed"
    return f"{record['library']} {version}: {record['booster']}, {record['task']}, {_way(record)}"


def _way(record: dict[str, Any]) -> str:
    device = "" if record["device"] == "cpu" else f", device {record['device']}"
    return f"profile {record['profile']}{device}"


def _show_one(record: dict[str, Any], screen: Screen) -> None:
    screen.say(_title(record))
    if record["unsupported"] is not None:
        screen.say(f"Unsupported: {record['unsupported']}.\n")
        return
    screen.rows(
        ["native parameter", "value", "because of"],
        [[name, repr(value), record["origins"].get(name, "")] for name, value in record["native"].items()],
    )
    if record["profile"] == "defaults":
        screen.say("The library runs with its own defaults: no parameters are passed except those above.")
    else:
        screen.rows(
            ["canonical parameter", "mark", "reason"],
            [[name, mark["mark"], mark["reason"]] for name, mark in record["marks"].items()],
        )
    if record["nondeterministic"]:
        screen.say(f"Nondeterministic: {record['nondeterministic']}.\n")
    if record["not_here"]:
        screen.say(f"Not here: {record['not_here']}.\n")


def _show_all(records: tuple[dict[str, Any], ...], screen: Screen) -> None:
    """One table of marks per booster, with the reasons below it."""
    for booster in dict.fromkeys(record["booster"] for record in records):
        chosen = [record for record in records if record["booster"] == booster]
        screen.say(f"{booster}, {chosen[0]['task']}, {_way(chosen[0])}")
        parameters = list(dict.fromkeys(name for record in chosen for name in record["marks"]))
        rows = [[name, *(_cell(record, name) for record in chosen)] for name in parameters]
        screen.rows(["canonical parameter", *(_column(record) for record in chosen)], rows)
        reasons = [
            [record["library"], name, mark["mark"], mark["reason"]]
            for record in chosen
            for name, mark in record["marks"].items()
            if mark["reason"]
        ]
        reasons += [[r["library"], "(all)", "unsupported", r["unsupported"]] for r in chosen if r["unsupported"]]
        reasons += [
            [r["library"], "(all)", "nondeterministic", r["nondeterministic"]] for r in chosen if r["nondeterministic"]
        ]
        reasons += [[r["library"], "(all)", "not here", r["not_here"]] for r in chosen if r["not_here"]]
        screen.rows(["library", "parameter", "mark", "reason"], reasons, keys=2)


def _column(record: dict[str, Any]) -> str:
    return f"{record['library']} {record['version'] or ''}".strip()


def _cell(record: dict[str, Any], name: str) -> str:
    return str(record["marks"].get(name, {}).get("mark", "-"))
