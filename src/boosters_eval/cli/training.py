"""The options that say what is trained, and on which data: declared once for all commands that take them."""

from typing import Annotated, Any

import typer

from boosters_eval.core.errors import ConfigError, UnknownNameError

# What `--library` takes besides a library's name; see docs/builds.md.
BUILDS = ", path/to/file.py:Class, or builds: LIBRARY==VERSION, NAME=LIBRARY@wheel-or-source-folder."

DatasetsOption = Annotated[
    list[str] | None,
    typer.Option("--dataset", "-d", help="Data sets by name, or FILE.csv:TARGET. Default: california."),
]
LibrariesOption = Annotated[
    list[str] | None,
    typer.Option("--library", "-l", help=f"Libraries{BUILDS} Default: all that are installed."),
]
BoostersOption = Annotated[
    list[str] | None, typer.Option("--booster", "-b", help="Boosters: gbdt, gblinear, linear_trees. Default: gbdt.")
]
CvOption = Annotated[
    str | None, typer.Option("--cv", help="Folds, or folds x repeats, instead of random splits: 5 or 5x10.")
]
SplitOption = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="How rows are split: random, time:COLUMN (train before, validate after; --cv is the number of windows, by"
        " default 5) or group:COLUMN (no group on both sides).",
    ),
]
TaskOption = Annotated[str | None, typer.Option("--task", help="The task of a FILE, instead of inferring it.")]
GrowthOption = Annotated[
    str | None, typer.Option("--growth", help="How trees grow: depthwise or leafwise. Default: depthwise.")
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", help="What models are trained on: cpu or cuda. Default: cpu.")
]
ParamOption = Annotated[
    list[str] | None, typer.Option("--param", "-p", help="Canonical parameters: --param max_depth=4.")
]
ProfileOption = Annotated[
    str, typer.Option("--profile", help="parity (mapped by meaning) or defaults (each library's own).")
]


def training_of(param: list[str] | None, growth: str | None, device: str | None) -> Any:
    """The canonical parameters that `--param`, `--growth` and `--device` ask for."""
    from boosters_eval.programs.benchmark.suites import parse_parameters
    from boosters_eval.runners.parameters import Device, GrowthStrategy, TrainingConfig

    base = parse_parameters(param or [], TrainingConfig())
    named = {part.partition("=")[0].strip() for text in param or [] for part in text.split(",")}
    if growth is not None:
        if named & {"growth", "growth_strategy"}:
            raise ConfigError("Use either --growth or --param growth=..., not both.")
        base = base.replace(growth_strategy=chosen("growth", growth, GrowthStrategy))
    if device is not None:
        if "device" in named:
            raise ConfigError("Use either --device or --param device=..., not both.")
        if device not in [member.value for member in Device]:
            raise ConfigError(f"The '--device' option must be cpu or cuda. Got '{device}' instead.")
        base = base.replace(device=Device(device))
    return base


def chosen(kind: str, value: str, enum: Any) -> Any:
    """The member of an enumeration that an option names."""
    valid = [member.value for member in enum]
    if value not in valid:
        raise UnknownNameError(kind, value, valid)
    return enum(value)
