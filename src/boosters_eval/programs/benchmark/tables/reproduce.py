"""The commands that reproduce a run and its report."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from boosters_eval.core.text import clean
from boosters_eval.programs.benchmark.tables.environment import builds_of
from boosters_eval.runners.parameters import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.engine.cell import Build
    from boosters_eval.programs.benchmark.results import ResultCollection


def commands(results: ResultCollection) -> tuple[str, ...]:
    """The command that was typed; for a run from Python, an equivalent one derived from the results."""
    typed = results.metadata.facts.command
    if not typed and not results.results:
        return ()
    lines = [["boosters-eval", *(typed or _derived(results))]]
    if results.run_id:
        lines.append(["boosters-eval", "report", "--run", results.run_id])
    return tuple(shlex.join(map(clean, words)) for words in lines)


def _derived(results: ResultCollection) -> list[str]:
    ours = results.results
    seeds = len(dict.fromkeys(result.seed for result in ours))
    folds = len({result.fold for result in ours if result.fold is not None})
    timed = any(result.timing_mode for result in ours)
    if results.suite in (None, "compare"):
        words = ["compare", "--dataset", *dict.fromkeys(result.dataset_name for result in ours)]
        words += ["--booster", *dict.fromkeys(result.booster_type for result in ours)]
        words += _training_options(list(results.metadata.configs.values()), timed=timed)
    else:
        words = ["run", "--suite", str(results.suite)]
    names = dict.fromkeys(outcome.library for outcome in (*ours, *results.errors))
    words += ["--library", *(_reference(name, builds_of(results)) for name in names)]
    words += ["--cv", f"{folds}x{seeds}"] if folds else ["--seeds", str(seeds)]
    splits = {f"{result.split.kind}:{result.split.column}" for result in ours if result.split is not None}
    words += ["--split", *splits] if len(splits) == 1 and words[0] == "compare" else []
    words += ["--timing-mode"] if timed else []
    words += ["--measure-memory"] if any(result.peak_memory_mb is not None for result in ours) else []
    words += ["--profile", "defaults"] if all(result.profile == "defaults" for result in ours) else []
    return words


def _reference(name: str, builds: Mapping[str, Build]) -> str:
    """A library, or a build as one asks for it: by its version, because where it came from was not recorded."""
    build = builds.get(name)
    if build is None:
        return name
    release = f"{build.library}=={build.version}"
    return release if {*"=@"} & {*name} else f"{name}={release}"


def _training_options(configs: list[dict[str, Any]], *, timed: bool) -> list[str]:
    """Options for the canonical parameters that all configs share and that differ from the defaults."""
    words = []
    for name, usual in TrainingConfig.usual().items():
        values = [training[name] for training in configs]
        if not values or values[0] == usual or any(value != values[0] for value in values):
            continue
        if name == "growth_strategy":
            words += ["--growth", str(values[0])]
        elif name == "device":
            words += ["--device", str(values[0])]
        elif name == "n_threads":
            words += [] if timed else ["--threads", str(values[0])]  # timing mode uses all cores anyway
        elif name != "seed":
            words += ["--param", f"{name}={values[0]}"]
    return words
