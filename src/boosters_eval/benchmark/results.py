"""Results: one result or one error per cell, and the collection that statistics and reports read."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Gt, Lt
from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, field_validator

from boosters_eval.core.errors import ConfigError, FileFormatError, UnknownNameError
from boosters_eval.core.files import MAX_RESULTS, MAX_TEXT, load_json, read_text, write_atomically
from boosters_eval.core.repeat import Repeat
from boosters_eval.engine.cell import cell_key
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.outcome import Common, Outcome
from boosters_eval.metrics.task import Task
from boosters_eval.runners.parameters import Mark, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from boosters_eval.engine.outcome import Sighting
    from boosters_eval.stats.significance import TestName

SCHEMA_VERSION = 1
Phase = Literal["start", "load", "build", "fit", "predict", "score", "done"]

# The fields in which two runs of the same plan may differ.
VOLATILE = frozenset(
    {
        "train_time_s",
        "build_time_s",
        "fit_time_s",
        "predict_time_s",
        "cpu_time_s",
        "peak_memory_mb",
        "threads_observed",
        "warnings",
    }
)


class Record(BaseModel):
    """The fields by which every outcome identifies its cell."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config_name: str
    library: str
    seed: int
    task: Task
    booster_type: str = "gbdt"
    dataset_name: str = ""
    variant: str | None = None
    fold: int | None = None
    profile: str = "parity"

    @property
    def repeat(self) -> Repeat:
        """The repeat of the cell."""
        return Repeat(self.seed, self.fold)

    @property
    def key(self) -> str:
        """The cell's key, the same in plan, journal and collection."""
        return cell_key(self.config_name, self.library, self.seed, self.fold)


class _ResultCommon(Common):
    """The native parameters, which differ between repeats only in the model's own seed."""

    native_params: dict[str, Any] | None = None
    marks: tuple[Mark, ...] = ()
    data_digest: str | None = None
    seeded: tuple[str, ...] = ()  # the native parameters that hold the model's own seed

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """The common part, without the seed, which differs by cell."""
        result = _as_result(outcome)
        params = result.native_params
        seeded = tuple(name for name, value in (params or {}).items() if value == result.model_seed)
        plain = None if params is None else {**params, **dict.fromkeys(seeded)}
        return cls(native_params=plain, marks=result.marks, data_digest=result.data_digest, seeded=seeded)

    def give_to(self, outcome: Outcome) -> None:
        """Restore the native parameters, with the cell's own seed."""
        result = _as_result(outcome)
        params = self.native_params
        if params is not None and self.seeded:
            params = {**params, **dict.fromkeys(self.seeded, result.model_seed)}
        vars(result).update(native_params=params, marks=self.marks, data_digest=self.data_digest)
        object.__setattr__(result, "__pydantic_fields_set__", _FIELDS)

    @classmethod
    def taken(cls) -> frozenset[str]:
        """The fields that are not stored in a result's own line."""
        return frozenset({"native_params", "marks", "data_digest"})


class BenchmarkResult(Record, Outcome):
    """A cell that finished."""

    common_type: ClassVar[type[Common] | None] = _ResultCommon

    metrics: dict[str, float]
    primary_metric: str | None = None

    train_time_s: float | None = None  # building the library's data set and training
    build_time_s: float | None = None
    fit_time_s: float | None = None
    predict_time_s: float | None = None
    cpu_time_s: float | None = None
    peak_memory_mb: float | None = None
    model_size_mb: float | None = None

    native_params: dict[str, Any] | None = None
    marks: tuple[Mark, ...] = ()  # the canonical parameters that are not mapped exactly
    nondeterministic: str | None = None
    n_trees_trained: int | None = None
    n_leaves_total: int | None = None

    library_version: str | None = None
    n_train: int | None = None
    n_valid: int | None = None
    split_digest: str | None = None
    data_digest: str | None = None
    model_seed: int | None = None
    n_threads: int = 1
    threads_observed: int | None = None
    timing_mode: bool = False
    start_method: str = "inline"
    memory_method: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def model_params(self) -> dict[str, Any] | None:
        """The RFC's name for native_params."""
        return self.native_params

    def with_sighting(self, sighting: Sighting) -> Self:
        """Add a warning if more threads ran than were given: the comparison was not fair."""
        seen, given = sighting.threads, self.n_threads
        more = seen is not None and seen > given
        warning = (f"{self.library} ran {seen} threads where {given} were given",) if more else ()
        return self.model_copy(
            update={
                "threads_observed": seen,
                "start_method": sighting.start_method,
                "warnings": self.warnings + warning,
            }
        )


class BenchmarkError(Record):
    """A cell that failed: what happened, where, and everything needed to find out why."""

    error_type: str
    error_message: str
    traceback: str | None = None
    phase: Phase = "start"
    signal: str | None = None
    stderr_tail: str = ""


class Unsupported(BaseModel):
    """A combination that a library does not support; known before anything runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config_name: str
    library: str
    reason: str


_FIELDS = set(BenchmarkResult.model_fields)


def _as_result(outcome: Outcome) -> BenchmarkResult:
    if not isinstance(outcome, BenchmarkResult):
        raise TypeError(f"A BenchmarkResult is required. Got {type(outcome).__name__} instead.")
    return outcome


class RunMetadata(BaseModel):
    """What a collection knows about its run besides the outcomes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempt: int | None = None
    begin: dict[str, Any] | None = None
    environment: RunFacts | None = None
    n_cells: Annotated[int, Ge(0)] | None = None
    n_missing: Annotated[int, Ge(0)] | None = None
    configs: dict[str, dict[str, Any]] = Field(default_factory=dict)  # the canonical parameters of each config
    user_metrics: dict[str, bool] = Field(default_factory=dict)  # whether more is better
    alpha: Annotated[float, Gt(0), Lt(1)] | None = None  # for a run with --seeds auto
    seeds_rule: str | None = None

    @property
    def facts(self) -> RunFacts:
        """Machine, versions and commit of the run; empty where they were not recorded."""
        return self.environment or RunFacts()

    def level(self, alpha: float | None = None) -> float:
        """The given level, or that of a run with --seeds auto, or 5 %."""
        from boosters_eval.stats.significance import DEFAULT_ALPHA  # noqa: PLC0415 (loads scipy)

        return alpha if alpha is not None else self.alpha or DEFAULT_ALPHA

    @field_validator("configs")
    @classmethod
    def _whole(cls, configs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, parameters in configs.items():
            missing = TrainingConfig.model_fields.keys() - parameters.keys()
            if missing:
                raise ValueError(f"config '{name}' has no '{min(missing)}'")
        return configs


class _Document(BaseModel):
    """The file form of a collection. A list is refused at its first fault, because there may be millions."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = SCHEMA_VERSION
    kind: Literal["boosters-eval results"] = "boosters-eval results"
    run_id: str | None = None
    suite: str | None = None
    metadata: RunMetadata = RunMetadata()
    results: Annotated[list[BenchmarkResult], FailFast()] = Field(default_factory=list)
    errors: Annotated[list[BenchmarkError], FailFast()] = Field(default_factory=list)
    unsupported: Annotated[list[Unsupported], FailFast()] = Field(default_factory=list)


class ResultCollection:
    """Results and errors of one run. It never runs anything."""

    def __init__(
        self,
        results: Iterable[BenchmarkResult] = (),
        errors: Iterable[BenchmarkError] = (),
        *,
        unsupported: Iterable[Unsupported] = (),
        run_id: str | None = None,
        suite: str | None = None,
        metadata: RunMetadata | None = None,
    ) -> None:
        self.results = list(results)
        self.errors = list(errors)
        self.unsupported = list(unsupported)
        self.run_id = run_id
        self.suite = suite
        self.metadata = metadata or RunMetadata()

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return f"ResultCollection({len(self.results)} results, {len(self.errors)} errors)"

    def filter(
        self,
        library: str | None = None,
        dataset: str | None = None,
        booster: str | None = None,
        task: Task | str | None = None,
        *,
        config: str | None = None,
    ) -> ResultCollection:
        """The outcomes that meet all criteria."""
        wanted = {
            "library": library,
            "dataset_name": dataset,
            "booster_type": booster,
            "task": _task(task),
            "config_name": config,
        }
        given = {name: value for name, value in wanted.items() if value is not None}

        def keep(record: Record) -> bool:
            return all(getattr(record, name) == value for name, value in given.items())

        return ResultCollection(
            filter(keep, self.results),
            filter(keep, self.errors),
            unsupported=self.unsupported,
            run_id=self.run_id,
            suite=self.suite,
            metadata=self.metadata,
        )

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per result: the basis of every tabular export."""
        return [_row(result) for result in self.results]

    def to_dataframe(self) -> pd.DataFrame:
        """One row per result, one column per metric."""
        import pandas as pd  # noqa: PLC0415 (slow to import, seldom needed)

        return pd.DataFrame(self.rows(), columns=None if self.results else list(_ROW_FIELDS))

    def summary(self, group_by: Sequence[str] = ("dataset", "booster", "library")) -> pd.DataFrame:
        """Mean, standard deviation (ddof 1) and n of every metric in each group; variants are kept apart."""
        frame = self.to_dataframe()
        keys = list(group_by)
        unknown = [key for key in keys if key not in frame.columns]
        if unknown:
            raise ConfigError(f"The 'group_by' parameter of summary must name columns. Got {unknown[0]!r} instead.")
        if "variant" not in keys and frame["variant"].notna().any():
            keys.append("variant")
        values = [name for name in frame.columns if name in self.metric_names() or name.endswith(("_s", "_mb"))]
        if not values:
            return frame[keys]
        return frame.groupby(keys, dropna=False, sort=False)[values].agg(["mean", "std", "count"])

    def metric_names(self) -> list[str]:
        """All metrics of the results, in the order of first appearance."""
        return list(dict.fromkeys(name for result in self.results for name in result.metrics))

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole collection as JSON, also written to `path` if one is given."""
        document = _Document(
            run_id=self.run_id,
            suite=self.suite,
            metadata=self.metadata,
            results=self.results,
            errors=self.errors,
            unsupported=self.unsupported,
        )
        text = document.model_dump_json(indent=1, exclude_none=True) + "\n"
        if path is not None:
            write_atomically(Path(path), text)
        return text

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV with one line per result, also written to `path` if one is given."""
        rows = self.rows()
        columns = list(dict.fromkeys(name for row in rows for name in row)) or list(_ROW_FIELDS)
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        if path is not None:
            write_atomically(Path(path), buffer.getvalue())
        return buffer.getvalue()

    def best(self, metric: str, alpha: float | None = None, *, test: TestName = "corrected") -> pd.DataFrame:
        """The best library of each config, or `tie` if its lead is not significant (at the run's level by default)."""
        from boosters_eval.benchmark.selection import best_frame  # noqa: PLC0415 (a facade)
        from boosters_eval.metrics import higher_is_better  # noqa: PLC0415 (a facade)

        more, level = higher_is_better(metric), self.metadata.level(alpha)
        return best_frame(self.results, metric, higher_is_better=more, alpha=level, test=test)

    def is_significant(
        self,
        library_a: str,
        library_b: str,
        metric: str,
        alpha: float | None = None,
        *,
        test: TestName = "corrected",
        dataset: str | None = None,
        config: str | None = None,
    ) -> tuple[bool, float]:
        """Whether two libraries differ in one config, and the p-value; `test="welch"` is the RFC's test."""
        from boosters_eval.benchmark.selection import significant  # noqa: PLC0415 (a facade)
        from boosters_eval.metrics import higher_is_better  # noqa: PLC0415 (a facade)

        rows = self.filter(dataset=dataset, config=config).results
        pair, more, level = (library_a, library_b), higher_is_better(metric), self.metadata.level(alpha)
        return significant(rows, pair, metric, higher_is_better=more, alpha=level, test=test)

    def to_markdown(
        self,
        highlight_best: bool = True,
        require_significance: bool = True,
        alpha: float | None = None,
        *,
        test: TestName = "corrected",
    ) -> str:
        """The tables as Markdown. The best mean is bold if it is significant, or always if that is not required."""
        from boosters_eval.benchmark.tables.build import build_tables  # noqa: PLC0415 (a facade)
        from boosters_eval.reports import render_markdown  # noqa: PLC0415 (a facade)

        return render_markdown(
            build_tables(
                self,
                test=test,
                alpha=alpha,
                highlight=highlight_best,
                require_significance=require_significance,
            )
        )

    def _repr_html_(self) -> str:
        from boosters_eval.benchmark.tables.build import build_tables  # noqa: PLC0415 (a facade)
        from boosters_eval.reports import render_fragment  # noqa: PLC0415 (a facade)

        return render_fragment(build_tables(self))

    def save_partial(self, path: str | Path) -> None:
        """Save the outcomes so far."""
        self.to_json(path)

    @classmethod
    def load_partial(cls, path: str | Path) -> Self:
        """Read what `save_partial` or `to_json` wrote."""
        return cls.from_json(read_text(Path(path), limit=MAX_RESULTS), source=str(path))

    @classmethod
    def from_json(cls, text: str, *, source: str = "results") -> Self:
        """Read the JSON form; any other content raises an error of one sentence."""
        if len(text) > MAX_TEXT and '"boosters-eval results"' not in text[:4096]:
            raise FileFormatError(f"{source} is not a boosters-eval results file.")
        raw = load_json(text, source)
        if not isinstance(raw, dict) or raw.get("kind") != "boosters-eval results":
            raise FileFormatError(f"{source} is not a boosters-eval results file.")
        version = raw.get("schema_version")
        if type(version) is not int or version < 1:
            raise FileFormatError(f"{source} must have a whole number as schema_version. Got {version!r} instead.")
        if version > SCHEMA_VERSION:
            raise FileFormatError(
                f"{source} has schema version {version}, this program reads up to {SCHEMA_VERSION}: upgrade it."
            )
        try:
            document = _Document.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise FileFormatError(f"{source} is not a valid results file: {where}: {first['msg']}.") from None
        for result in document.results:
            if result.primary_metric is not None and result.primary_metric not in result.metrics:
                raise FileFormatError(f"{source}: {result.key} has no '{result.primary_metric}', its primary metric.")
        return cls(
            document.results,
            document.errors,
            unsupported=document.unsupported,
            run_id=document.run_id,
            suite=document.suite,
            metadata=document.metadata,
        )


def _task(task: Task | str | None) -> Task | None:
    try:
        return None if task is None else Task(task)
    except ValueError:
        raise UnknownNameError("task", str(task), [known.value for known in Task]) from None


_ROW_FIELDS = ("config", "dataset", "booster", "task", "library", "variant", "seed", "fold")


def _row(result: BenchmarkResult) -> dict[str, Any]:
    return {
        "config": result.config_name,
        "dataset": result.dataset_name,
        "booster": result.booster_type,
        "task": result.task.value,
        "library": result.library,
        "variant": result.variant,
        "seed": result.seed,
        "fold": result.fold,
        **result.metrics,
        "train_time_s": result.train_time_s,
        "predict_time_s": result.predict_time_s,
        "peak_memory_mb": result.peak_memory_mb,
        "model_size_mb": result.model_size_mb,
        "n_trees_trained": result.n_trees_trained,
        "n_leaves_total": result.n_leaves_total,
        "n_threads": result.n_threads,
        "library_version": result.library_version,
        "split_digest": result.split_digest,
    }
