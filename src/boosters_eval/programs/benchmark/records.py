"""What is known of the cells of a benchmark that gave no result and of their run, and all outcomes as flat rows."""

from __future__ import annotations

import csv
import io
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Gt, Lt
from pydantic import AfterValidator, ConfigDict, Field, field_validator

from boosters_eval.core.errors import require
from boosters_eval.core.machine import MachineInfo
from boosters_eval.core.model import FileModel
from boosters_eval.core.text import clean_csv_cell
from boosters_eval.datasets.config import DataAudit
from boosters_eval.engine.facts import RunFacts
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.margins import Margins, check_margins, read_margins
from boosters_eval.runners.parameters import TrainingConfig
from boosters_eval.runners.result import BenchmarkResult, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.core.request import Repeat

# fmt: off
Phase = Literal[
    "start", "load", "warm-up", "build", "fit", "predict", "score",
    "permutation", "importances", "attributions", "probe", "done",
]
# fmt: on
ROW_FIELDS = ("config", "dataset", "booster", "task", "library", "variant", "seed", "fold")
# What each trivial rule is called in a sentence, and, in fewer letters, in a table.
RULES = {
    "mean": ("predicting the mean", "predict the mean"),
    "median": ("predicting the median", "predict the median"),
    "quantiles": ("predicting the training quantiles", "predict quantiles"),
    "priors": ("predicting the class priors", "predict the priors"),
    "order": ("keeping the query's order", "keep the order"),
}
OWN_DEFAULTS = "/defaults"  # ends the name of a benchmark that is run once more, with each library's own defaults
_MEASURED = (
    *("train_time_s", "predict_time_s", "peak_memory_mb", "first_use_mb", "model_size_mb"),
    *("n_trees_trained", "n_leaves_total", "n_threads", "library_version", "split_digest"),
)


class BenchmarkError(Record):
    """A cell that failed: what happened, where, and everything needed to find out why."""

    task: Task | None = None  # type: ignore[assignment]  # the RFC's errors do not have it
    error_type: str
    error_message: str
    traceback: str | None = None
    phase: Phase = "start"
    signal: str | None = None
    stderr_tail: str = ""
    failed_before: int = 0  # not counting this one
    killed_before: int = 0  # from outside, this time included
    machine: str | None = None


class Absence(FileModel):
    """A library that has no cells in a config; known before anything runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config_name: str
    library: str
    reason: str
    task: Task
    booster_type: str = "gbdt"
    dataset_name: str = ""
    variant: str | None = None
    profile: str = "parity"


class Unsupported(Absence):
    """The library cannot do what the config asks for."""


class Unavailable(Absence):
    """The library was asked for, but it is not installed, or does not run here."""


class RunMetadata(FileModel):
    """What a collection knows about its run besides the outcomes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempt: int | None = None
    begin: dict[str, Any] | None = None
    environment: RunFacts | None = None
    n_cells: Annotated[int, Ge(0)] | None = None
    n_missing: Annotated[int, Ge(0)] | None = None
    unfinished_attempt: Annotated[int, Ge(1)] | None = None  # a later one than this, which was interrupted
    configs: dict[str, dict[str, Any]] = Field(default_factory=dict)  # the canonical parameters of each config
    user_metrics: dict[str, bool] = Field(default_factory=dict)  # whether more is better
    alpha: Annotated[float, Gt(0), Lt(1)] | None = None  # for a run with --seeds auto
    seeds_rule: str | None = None
    remarks: tuple[str, ...] = ()  # on how it was judged, which every report mentions
    rescored: tuple[str, ...] = ()  # the words of `rescore` by which other metrics were asked for after the run
    left_out: tuple[str, ...] = ()  # data sets of the run that none of these could be computed on
    # What counts as equivalent, where it is not the default.
    margin: Annotated[tuple[str, ...], AfterValidator(read_margins)] | None = None
    audits: dict[str, DataAudit] = Field(default_factory=dict)  # what was found in each data set when it was used
    # By digest, of a run whose cells name theirs; of any other, the environment has the one machine.
    machines: dict[str, MachineInfo] = Field(default_factory=dict)

    @property
    def unfair_times(self) -> str:
        """Why no time of the run is judged, in a few words; empty if they are, unless a cell says otherwise."""
        return ", ".join(dict.fromkeys(item.reason for item in self.facts.disturbed if not item.judged))

    @property
    def facts(self) -> RunFacts:
        """Machine, versions and commit of the run; empty where they were not recorded."""
        return self.environment or RunFacts()

    def level(self, alpha: float | None = None) -> float:
        """The given level, or that of a run with --seeds auto, or 5 %."""
        from boosters_eval.stats.significance import DEFAULT_ALPHA  # noqa: PLC0415 (loads scipy)

        require("alpha", alpha, (Real, type(None)), "a number between 0 and 1")
        return alpha if alpha is not None else self.alpha or DEFAULT_ALPHA

    def margins(self, margin: Any = None) -> Margins:
        """The given margins, or those of the run, or 1 % of the error."""
        return Margins.of(self.margin if margin is None else check_margins(margin))

    @field_validator("configs")
    @classmethod
    def _whole(cls, configs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, parameters in configs.items():
            missing = TrainingConfig().model_dump().keys() - parameters.keys()
            if missing:
                raise ValueError(f"config '{name}' has no '{min(missing)}'")
        return configs


def row_of(result: BenchmarkResult) -> dict[str, Any]:
    """The flat row of a result: what it is of, each metric, and what was measured besides."""
    measured = {name: getattr(result, name) for name in _MEASURED}
    return {**_identify(result), **result.metrics, **measured, **_machine(result)}


def _identify(item: BenchmarkResult | BenchmarkError | Absence) -> dict[str, Any]:
    seed, fold = (None, None) if isinstance(item, Absence) else item.repeat
    task = item.task and item.task.value
    names = (item.config_name, item.dataset_name, item.booster_type, task, item.library, item.variant, seed, fold)
    return dict(zip(ROW_FIELDS, names, strict=True))


def _machine(outcome: BenchmarkResult | BenchmarkError) -> dict[str, str]:
    return {} if outcome.machine is None else {"machine": outcome.machine}


def write_csv(results: Sequence[BenchmarkResult], others: Sequence[BenchmarkError | Absence]) -> str:
    """CSV with a line per result, per trivial rule of a split, and per outcome without numbers, in this order."""
    rows = [{**row_of(result), **_status(result)} for result in results]
    rows += [*_trivial_rows(results), *map(_row_without_numbers, others)]
    last = ("status", "reason")
    named = dict.fromkeys([*ROW_FIELDS, *(name for row in rows for name in row if name not in last), *last])
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(named), lineterminator="\n")
    writer.writerow({name: clean_csv_cell(name) for name in named})
    writer.writerows({name: clean_csv_cell(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def _status(result: BenchmarkResult) -> dict[str, str]:
    if not result.failed_before:
        return {"status": "ok"}
    times = "once" if result.failed_before == 1 else f"{result.failed_before} times"
    return {"status": "flaky", "reason": f"it failed {times} before it finished"}


def _row_without_numbers(item: BenchmarkError | Absence) -> dict[str, Any]:
    if isinstance(item, BenchmarkError):
        reason = f"{item.error_type}: {item.error_message}"
        return {**_identify(item), **_machine(item), "status": "error", "reason": reason}
    status = "unsupported" if isinstance(item, Unsupported) else "unavailable"
    return {**_identify(item), "status": status, "reason": item.reason}


def _trivial_rows(results: Iterable[BenchmarkResult]) -> list[dict[str, Any]]:
    """What the trivial rules score on each split, once, although each library's result of the split has it."""
    rows: dict[tuple[str, Repeat, str], dict[str, Any]] = {}
    for result in results:
        for rule, scores in (result.trivial or {}).items():
            label = RULES.get(rule, (rule,))[-1]
            named = {**_identify(result), "library": label, "split_digest": result.split_digest}
            rows.setdefault((result.config_name, result.repeat, rule), {**named, **scores, "status": "trivial"})
    return list(rows.values())
