"""What the gate reads and writes: cases, the report on them, and the decision with all that it rests on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MinLen
from pydantic import ConfigDict, Field, Strict, field_validator

from boosters_eval.baseline.render import apart
from boosters_eval.core.errors import BoostersEvalError, UnknownNameError
from boosters_eval.core.model import Model

SCHEMA_VERSION = 1
KIND = "boosters-eval gate decision"
TIERS = {"bronze": 10, "silver": 30, "gold": 100}  # the fewest cases for a promotion
LOWEST_MIN_CASES = TIERS["bronze"]
MIN_HELD_OUT = 5

Unit = Annotated[float, Ge(0), Le(1), Strict()]
CaseClass = Literal["dev", "held_out"]


class GateError(BoostersEvalError):
    """The inputs are valid, but no decision can be computed from them."""


class Case(Model):
    """One case: a (data set, seed) cell of the library under test, or a line of a scores file."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    case_id: Annotated[str, MinLen(1)]
    score: Unit
    class_: CaseClass | None = Field(default=None, alias="class")
    reason: str = ""  # why the score is 0 although nothing was measured


class BenchRunReport(Model):
    """What the gate knows about a run. mean_score and stddev are for people: the gate never reads them (ADR-0002)."""

    schema_version: Literal[1] = 1
    run_id: str
    library: str | None = None
    per_case: Annotated[tuple[Case, ...], MinLen(1)]  # sorted by case id
    n_cases: int
    n_held_out: int
    mean_score: float
    stddev: float | None  # ddof 1; None for a single case
    lower_bound_95: float
    lower_bound_95_held_out: float | None  # None without held-out cases
    n_changed: int = 0  # configs whose parameters are not the baseline's; the notes say which
    versions: dict[str, str]
    notes: tuple[str, ...] = ()


class GateRules(Model):
    """What a promotion needs."""

    tier: str = "bronze"
    threshold: Annotated[float, Ge(0), Le(1)]
    min_cases: Annotated[int, Ge(LOWEST_MIN_CASES)] | None = None  # None: the tier's
    held_out: bool = True  # whether at least five held-out cases are needed
    changed_parameters: bool = False  # whether the run's parameters may differ from the baseline's

    @field_validator("tier")
    @classmethod
    def _known(cls, tier: str) -> str:
        if tier not in TIERS:
            raise UnknownNameError("tier", tier, TIERS)
        return tier

    @property
    def needed(self) -> int:
        """The fewest cases."""
        return TIERS[self.tier] if self.min_cases is None else self.min_cases

    def objections(
        self, *, lower_bound_95: float, n_cases: int, n_held_out: int, n_changed: int = 0
    ) -> tuple[str, ...]:
        """Why there is no promotion, in sentences; the bound and the counts are all that it may look at."""
        found = []
        if not lower_bound_95 >= self.threshold:
            bound, _ = apart(lower_bound_95, self.threshold)
            found.append(f"The lower bound {bound} is below the threshold {self.threshold}.")
        if n_cases < self.needed:
            found.append(f"{_there_are(n_cases, 'case')}; tier {self.tier} needs {self.needed}.")
        if self.held_out and n_held_out < MIN_HELD_OUT:
            have = _there_are(n_held_out, "held-out case")
            found.append(f"{have}; {MIN_HELD_OUT} are needed (or say --no-held-out).")
        if n_changed and not self.changed_parameters:
            have = _there_are(n_changed, "config")
            found.append(f"{have} with other parameters than the baseline's (or say --allow-changed-parameters).")
        return tuple(found)


def _there_are(number: int, noun: str) -> str:
    return f"There is 1 {noun}" if number == 1 else f"There are {number} {noun}s"


class Reference(Model):
    """What the baseline says about the library under test in one config."""

    config: str
    metric: str
    higher_is_better: bool
    mean: float
    per_seed: dict[str, float] = Field(default_factory=dict)  # empty: the baseline has only the mean
    data_digest: str | None = None
    split_digests: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)  # the effective ones; empty: not known
    profile: str | None = None


class RunSource(Model):
    """A finished run against a baseline."""

    kind: Literal["run"] = "run"
    run_id: str
    attempt: int
    journal_digest: str
    library: str
    held_out: tuple[str, ...]  # data sets and configs whose cells are held out
    baseline: str  # the file as it was named
    baseline_sha256: str
    references: tuple[Reference, ...]


class ScoresSource(Model):
    """A file of scores; its cases are in the report, and their digest is the run id."""

    kind: Literal["scores"] = "scores"
    file: str  # as it was named
    file_sha256: str


class GateDecision(Model):
    """The decision and everything needed to compute it again."""

    schema_version: Literal[1] = 1
    kind: Literal["boosters-eval gate decision"] = "boosters-eval gate decision"
    promoted: bool
    objections: tuple[str, ...]
    rules: GateRules
    min_cases: int
    report: BenchRunReport
    source: Annotated[RunSource | ScoresSource, Field(discriminator="kind")]

    def text(self) -> str:
        """The file's content, the same for the same decision."""
        return self.model_dump_json(indent=1) + "\n"
