"""The command `explain`: the parameters that a library is given, and how exactly they match the canonical ones."""

from typing import Annotated, Any

import typer

from boosters_eval.cli.output import print_json, print_rows, say
from boosters_eval.cli.training import (
    BUILDS,
    BoostersOption,
    DeviceOption,
    GrowthOption,
    ParamOption,
    ProfileOption,
    chosen,
    training_of,
)
from boosters_eval.core.errors import ConfigError, ExitCode


def explain(
    *,
    library: Annotated[
        list[str] | None,
        typer.Option("--library", "-l", help=f"Libraries to explain{BUILDS} Either these or --all."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="One table for all libraries.")] = False,
    booster: BoostersOption = None,
    task: Annotated[
        str, typer.Option("--task", help="regression, binary, multiclass, quantile or ranking.")
    ] = "regression",
    growth: GrowthOption = None,
    device: DeviceOption = None,
    param: ParamOption = None,
    profile: ProfileOption = "parity",
    classes: Annotated[int, typer.Option("--classes", min=3, help="Number of classes, for multiclass.")] = 3,
    quantile: Annotated[
        list[float] | None, typer.Option("--quantile", help="Quantiles to predict. Default: 0.5.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads per cell.")] = 1,
    weighted: Annotated[bool, typer.Option("--weighted", help="Assume that rows have weights.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Assume that some values are missing.")] = False,
    categorical: Annotated[
        list[int] | None, typer.Option("--categorical", min=0, help="Positions of categorical columns.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show how parameters are mapped for each library.

    For each library: its native parameters, and whether each canonical parameter is exact, approximated or
    unsupported, with the reason.
    """
    from boosters_eval.metrics.task import Task
    from boosters_eval.runners import FitRequest
    from boosters_eval.runners.builds.resolve import all_libraries, competitor_names
    from boosters_eval.runners.parameters import BoosterType, Profile
    from boosters_eval.runners.targets import runner_of

    if every == bool(library):
        raise ConfigError("Use either --library or --all to choose the libraries.")
    names = competitor_names(library) if library else all_libraries()
    training = training_of(param, growth, device)
    kinds = [chosen("booster", kind, BoosterType) for kind in booster or ["gbdt"]]
    chosen_task = chosen("task", task, Task)
    records = []
    for kind in kinds:
        request = FitRequest(
            task=chosen_task,
            training=training,
            booster_type=kind,
            profile=chosen("profile", profile, Profile),
            n_classes={Task.BINARY: 2, Task.MULTICLASS: classes}.get(chosen_task),
            quantiles=_quantiles(quantile or [0.5]) if chosen_task is Task.QUANTILE else (),
            categorical=tuple(categorical or ()),
            has_missing=missing,
            weighted=weighted,
            n_threads=threads,
            seed=training.seed,
        )
        records += [_record(runner_of(name), request) for name in dict.fromkeys(names)]
    if json:
        print_json(records if every or len(records) > 1 else records[0])
    elif every:
        _show_all(records)
    else:
        for record in records:
            _show_one(record)
    return ExitCode.SUCCESS


def _quantiles(given: list[float]) -> tuple[float, ...]:
    for level in given:
        if not 0 < level < 1:
            raise ConfigError(f"The '--quantile' option must be between 0 and 1, both excluded. Got {level} instead.")
    return tuple(given)


def _record(runner: Any, request: Any) -> dict[str, Any]:
    """Everything that is known without running anything, as plain values."""
    from boosters_eval.runners.devices import device_fault
    from boosters_eval.runners.rules import CANONICAL

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
        "not_here": device_fault(runner, request.training.device),
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


def _show_one(record: dict[str, Any]) -> None:
    say(_title(record))
    if record["unsupported"] is not None:
        say(f"Unsupported: {record['unsupported']}.\n")
        return
    print_rows(
        ["native parameter", "value", "because of"],
        [[name, repr(value), record["origins"].get(name, "")] for name, value in record["native"].items()],
    )
    if record["profile"] == "defaults":
        say("The library runs with its own defaults: no parameters are passed except those above.")
    else:
        print_rows(
            ["canonical parameter", "mark", "reason"],
            [[name, mark["mark"], mark["reason"]] for name, mark in record["marks"].items()],
        )
    if record["nondeterministic"]:
        say(f"Nondeterministic: {record['nondeterministic']}.\n")
    if record["not_here"]:
        say(f"Not here: {record['not_here']}.\n")


def _show_all(records: list[dict[str, Any]]) -> None:
    """One table of marks per booster, with the reasons below it."""
    for booster in dict.fromkeys(record["booster"] for record in records):
        chosen = [record for record in records if record["booster"] == booster]
        say(f"{booster}, {chosen[0]['task']}, {_way(chosen[0])}")
        parameters = list(dict.fromkeys(name for record in chosen for name in record["marks"]))
        rows = [[name, *(_cell(record, name) for record in chosen)] for name in parameters]
        print_rows(["canonical parameter", *(_column(record) for record in chosen)], rows)
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
        print_rows(["library", "parameter", "mark", "reason"], reasons, keys=2)


def _column(record: dict[str, Any]) -> str:
    return f"{record['library']} {record['version'] or ''}".strip()


def _cell(record: dict[str, Any], name: str) -> str:
    return str(record["marks"].get(name, {}).get("mark", "-"))


def register(app: typer.Typer) -> None:
    """Add this command to the program."""
    app.command()(explain)
