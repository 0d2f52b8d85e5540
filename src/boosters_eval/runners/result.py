"""What one fit of a library gave: its scores, its cost, and what it was done with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge
from pydantic import AliasChoices, ConfigDict, Field, StringConstraints, WithJsonSchema

from boosters_eval.core.model import FileModel
from boosters_eval.core.request import Part, Repeat
from boosters_eval.engine.cell import Common, Outcome, make_key
from boosters_eval.metrics.catalog import OF_MACHINE
from boosters_eval.metrics.task import Task
from boosters_eval.runners.parameters import Mark

if TYPE_CHECKING:
    from boosters_eval.engine.cell import Sighting

# A score is finite. In a file that a program built from others, it is null, and such a file is not read back.
Score = Annotated[float, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]}, mode="serialization")]
ArrayDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
# The fields in which two runs of the same plan may differ.
VOLATILE = frozenset(
    {*OF_MACHINE, "threads_observed", "cpu_taken", "warnings", "failed_before", "machine", "taken_from"}
)
TRAINING_ROWS = 4096  # that are scored: they tell a model that learns less from one that generalizes worse
BUSY = 0.1  # the share of a cell's CPUs that other programs may use before its times are not judged
BUSY_CELL = "the machine was busy"  # how the warning about such a cell begins


class Record(FileModel):
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
        return Repeat(self.seed, self.fold)

    @property
    def key(self) -> str:
        """The cell's key, the same in plan, journal and collection."""
        return make_key(self.config_name, self.library, self.seed, self.fold)


class _ResultCommon(Common):
    """The native parameters, which differ between repeats only in the model's own seed."""

    native_params: dict[str, Any] | None = None
    marks: tuple[Mark, ...] = ()
    data_digest: str | None = None
    seeded: tuple[str, ...] = ()  # the native parameters that hold the model's own seed

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """The common part, without the seed, which differs by cell."""
        result = as_result(outcome)
        params = result.native_params
        seeded = tuple(name for name, value in (params or {}).items() if value == result.model_seed)
        plain = None if params is None else {**params, **dict.fromkeys(seeded)}
        return cls(native_params=plain, marks=result.marks, data_digest=result.data_digest, seeded=seeded)

    def give_to(self, outcome: Outcome) -> None:
        """Restore the native parameters, with the cell's own seed."""
        fields = vars(as_result(outcome))
        params = self.native_params
        if params is not None and self.seeded:
            params = params.copy()
            for name in self.seeded:  # one by one: of 100 000 outcomes, it is the time that counts
                params[name] = fields["model_seed"]
        fields["native_params"], fields["marks"], fields["data_digest"] = params, self.marks, self.data_digest
        object.__setattr__(outcome, "__pydantic_fields_set__", _FIELDS)

    @classmethod
    def taken(cls) -> frozenset[str]:
        """The fields that are not stored in a result's own line."""
        return frozenset({"native_params", "marks", "data_digest"})


class SplitFacts(FileModel):
    """A split by time, whose fold is its window, or by groups that are kept whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["time", "group"]
    column: str
    n_train_groups: Annotated[int, Ge(1)] | None = None
    n_valid_groups: Annotated[int, Ge(1)] | None = None


def find_part(repeat: Repeat, part: Part | None, split: SplitFacts | None) -> Part | None:
    """Which of the disjoint test sets of its seed a repeat is scored on: balanced splits and folds have them."""
    ordered = split is not None and split.kind == "time"
    return part if repeat.fold is None or ordered else Part(repeat.seed, repeat.fold)


class KeptRows(FileModel):
    """The digests of what a fit predicted, and of the rows of its split: arrays in the folder of its run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    predictions: ArrayDigest
    rows: ArrayDigest


class BenchmarkResult(Record, Outcome):
    """A cell that finished; `model_params`, the RFC's name, is accepted for `native_params`."""

    common_type: ClassVar[type[Common] | None] = _ResultCommon

    metrics: dict[str, Score]
    primary_metric: str | None = None
    # By trivial rule, such as "mean": what it scores on the same split; None where there is none.
    trivial: dict[str, dict[str, Score]] | None = None

    train_time_s: float | None = None  # building the library's data set and training
    build_time_s: float | None = None
    fit_time_s: float | None = None
    predict_time_s: float | None = None
    cpu_time_s: float | None = None
    samples_ns: dict[str, tuple[int, ...]] = Field(default_factory=dict)  # by the protocol adaptive-v1: every run
    peak_memory_mb: float | None = None  # of building, training and predicting, after a small fit
    first_use_mb: float | None = None  # what that small fit left behind: code and thread pools, a one-off cost
    model_size_mb: float | None = None

    native_params: dict[str, Any] | None = Field(None, validation_alias=AliasChoices("native_params", "model_params"))
    marks: tuple[Mark, ...] = ()  # the canonical parameters that are not mapped exactly
    nondeterministic: str | None = None
    target_offset: float | tuple[float, ...] | None = (
        None  # taken from targets that float32 cannot hold, and added to predictions again
    )
    target_unit: float | tuple[float, ...] | None = None  # what targets of odd sizes are divided by after that
    n_trees_trained: int | None = None
    n_rounds_trained: int | None = None  # a round may grow a tree for each output
    n_leaves_total: int | None = None
    training_score: Score | None = None  # the primary metric on training rows, at most as many as TRAINING_ROWS

    library_version: str | None = None
    n_train: int | None = None
    n_valid: int | None = None
    split_digest: str | None = None
    split: SplitFacts | None = None  # None: at random
    part: Part | None = None  # of a balanced split: which of the disjoint test sets of its seed
    data_digest: str | None = None
    predictions_digest: str | None = None  # of the test rows' predictions
    kept: KeptRows | None = None  # where these can be read; None: they were not kept
    model_seed: int | None = None
    n_threads: int = 1
    threads_observed: int | None = None
    timing_mode: bool = False
    cpu_taken: float | None = None  # in timing mode: the share of its CPUs that other programs used
    start_method: str = "inline"
    memory_method: str | None = None
    warnings: tuple[str, ...] = ()
    taken_from: str | None = None  # the earlier run, as ID/ATTEMPT, whose outcome it is; it has no times then

    @property
    def model_params(self) -> dict[str, Any] | None:
        """The RFC's name for native_params."""
        return self.native_params

    @property
    def dealt(self) -> Part | None:
        """The part of the rows that it was scored on; None if they were drawn by themselves."""
        return find_part(self.repeat, self.part, self.split)

    @property
    def kept_digests(self) -> tuple[str, ...]:
        return () if self.kept is None else (self.kept.predictions, self.kept.rows)

    @property
    def fairly_timed(self) -> bool:
        """Whether its times may be judged: they were taken in timing mode, on a machine that was not busy."""
        return self.timing_mode and (self.cpu_taken or 0.0) <= BUSY

    def summary(self) -> str:
        """The primary metric, the seed that the model got, and the time of training."""
        score = [f"{name} {self.metrics[name]:.6g}" for name in [self.primary_metric] if name in self.metrics]
        took = [] if self.train_time_s is None else [f"trained in {self.train_time_s:.3f} s"]
        seeded = [] if self.model_seed is None else [f"model seed {self.model_seed}"]
        return ", ".join([*score, *seeded, *took]) or "done"

    def with_sighting(self, sighting: Sighting) -> Self:
        """Add a warning if more threads ran than were given: the comparison was not fair."""
        seen, given = sighting.threads, self.n_threads
        more = seen is not None and seen > given
        warning = (f"{self.library} ran {seen} threads instead of {given}",) if more else ()
        return self.model_copy(
            update={
                "threads_observed": seen,
                "start_method": sighting.start_method,
                "warnings": self.warnings + warning,
            }
        )


_FIELDS = set(BenchmarkResult.model_fields)


def as_result(outcome: Outcome) -> BenchmarkResult:
    """An outcome of a fit; any other is a mistake of the program."""
    if not isinstance(outcome, BenchmarkResult):
        raise TypeError(f"A BenchmarkResult is required. Got {type(outcome).__name__} instead.")
    return outcome
