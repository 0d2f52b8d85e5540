"""Which libraries take part in a benchmark: those that are asked for, made for it, and available here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import MissingLibraryError
from boosters_eval.engine.plan import Exclusion
from boosters_eval.runners import FitRequest
from boosters_eval.runners.parameters import Device

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.runners.base import Runner
    from boosters_eval.runners.config import BenchmarkConfig


def competitors(
    configs: Sequence[BenchmarkConfig], only: Mapping[str, type[Runner]] | None
) -> list[tuple[BenchmarkConfig, Sequence[str]]]:
    """The libraries of each benchmark of a suite.

    If some are named, they replace the suite's own, except where a benchmark was not made for them; a benchmark that
    is left without any does not run.
    """
    if only is None:
        return [(config, config.libraries) for config in configs]
    named = [(config, [name for name, each in only.items() if _made_for(config, each)]) for config in configs]
    return [pair for pair in named if pair[1]] or [(config, list(only)) for config in configs]


def _made_for(config: BenchmarkConfig, runner: type[Runner]) -> bool:
    if runner.name in config.libraries or runner.library() in config.libraries:
        return True
    if config.training.device is not Device.CPU:  # one that it cannot use is said, not left out
        return True
    data = config.dataset
    request = FitRequest(
        task=config.task,
        training=config.training,
        booster_type=config.booster_type,
        profile=config.profile,
        n_classes=data.n_classes,
        quantiles=data.quantiles,
    )
    return runner.unsupported(request) is None


def usable_libraries(
    runners: Mapping[str, type[Runner]], *, required: bool = False
) -> tuple[list[str], dict[str, str]]:
    """The libraries that can be used, and for each of the others the reason why not."""
    found = {name: runner.missing() for name, runner in runners.items()}
    reasons = {name: reason for name, reason in found.items() if reason}
    usable = [name for name in found if name not in reasons]
    if reasons and (required or not usable):
        name, reason = next(iter(reasons.items()))
        raise MissingLibraryError(f"{name}: {reason}.")
    return usable, reasons


def unavailable_in(libraries: Mapping[str, Sequence[str]], reasons: Mapping[str, str]) -> tuple[Exclusion, ...]:
    """Each library that a benchmark is missing, by the benchmark's name."""
    return tuple(
        Exclusion(spec=config, target=name, reason=reasons[name])
        for config, names in libraries.items()
        for name in names
        if name in reasons
    )
