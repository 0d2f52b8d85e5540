"""The comparison of a paper's values with ours, as a file. What follows from other fields is checked on reading."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args

from annotated_types import Ge
from pydantic import Field, model_validator

from boosters_eval.core.errors import ConfigError, ExitCode, FileFormatError
from boosters_eval.core.files import FORMAT, Format, check_format, load_json, read_text
from boosters_eval.core.model import Model
from boosters_eval.programs.paper.source import dump_yaml, parse_yaml
from boosters_eval.programs.paper.specification import Quantity, StdOver, make_target_name
from boosters_eval.programs.paper.tolerances import MetricKind
from boosters_eval.reports.findings import Reported, ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.core.findings import Screen
    from boosters_eval.reports.document import Document


_AnyModel = TypeVar("_AnyModel", bound=Model)
TargetStatus = Literal[
    "ok",
    "failed",  # some repeat failed: what is left is shown, but proves nothing
    "not_runnable",  # no binding, a library or a file that is not here
]


class TargetRecord(Model):
    """What became of one target: a row of a table on a data set."""

    table: str
    row: str  # the row's key
    dataset: str
    primary: bool
    status: TargetStatus
    reason: str = ""  # why it is not ok
    seeds: tuple[int, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)  # of what produced the values
    warnings: tuple[str, ...] = ()  # of our run

    @property
    def name(self) -> str:
        return make_target_name(self.table, self.row, self.dataset)


class Summary(Model):
    """What is known of a value that is itself a mean: how far the repeats were apart, and how many there were."""

    std: Annotated[float, Ge(0)] | None = None
    n: Annotated[int, Ge(1)] = 1


class Measured(TargetRecord):
    # By metric, one per finished repeat that returned it.
    values: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    summaries: dict[str, Summary] = Field(default_factory=dict)  # of metrics whose one value is a mean
    std_over: StdOver | None = None  # what the repeats differ in
    planned: int = 0  # repeats, finished or not
    # How they came about: data set, split sizes, preprocessing, parameters.
    conditions: dict[str, str] = Field(default_factory=dict)

    def summary(self) -> str:
        """The mean of each metric, with its spread over the repeats."""
        shown = []
        for name, values in self.values.items():
            spread = f" ± {stdev(values):.2g} (n = {len(values)})" if len(values) > 1 else ""
            shown.append(f"{name} {fmean(values):.6g}{spread}")
        return "; ".join(shown)


class PaperResults(ReportedFindings, Model):
    """The content of `results.json`."""

    plain: ClassVar[bool] = True
    schema_version: Format = FORMAT
    kind: Literal["boosters-eval paper results"] = "boosters-eval paper results"
    paper: str
    specification_digest: str
    run_id: str | None  # None: nothing could be run
    only: tuple[str, ...] = ()  # what the run was restricted to; other targets are not missing then
    # Commit, versions, machine, command: of the time when it ran.
    environment: dict[str, str] = Field(default_factory=dict)
    targets: tuple[Measured, ...]

    @property
    def exit_code(self) -> int:
        """A target that did not run is no success."""
        good = all(found.status == "ok" for found in self.targets)
        return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR

    def document(self) -> Document:
        from boosters_eval.programs.paper.document import lay_out_results  # noqa: PLC0415 (it reads this)

        return lay_out_results(self)

    def show(self, screen: Screen) -> None:
        if not screen.quiet:
            super().show(screen)

    def conclude(self, screen: Screen) -> None:
        """What did not run and what it warned of is told, even if quiet."""
        for found in self.targets:
            if found.status != "ok":
                screen.note(f"Error: {found.name}: {found.status.replace('_', ' ')}: {found.reason}")
            for text in found.warnings:
                screen.note(f"Warning: {found.name}: {text}")


MATCH, CLOSE, LARGE = Decimal("0.01"), Decimal("0.03"), Decimal("0.10")  # relative differences

ComparisonStatus = Literal[
    "match", "close", "within_tolerance", "better", "deviation", "significant_deviation", "missing"
]
PaperVerdict = Literal["reproduced", "reproduced with deviations", "not reproduced", "incomplete"]
Confidence = Literal["high", "medium", "low"]


class _Concluded(Model):
    """A model whose last fields follow from the others. A file in which they do not is refused."""

    @classmethod
    def derive(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The model with all that follows from what is given."""
        return cls(**given, **cls.derive(given))

    @model_validator(mode="after")
    def _follows(self) -> Self:
        for name, value in self.derive(self.__dict__).items():
            if getattr(self, name) != value:
                of = f" of the metric '{self.metric_name}'" if isinstance(self, MetricComparison) else ""
                raise FileFormatError(
                    f"The '{name}'{of} does not follow from {'its values' if of else 'the targets'}: "
                    f"it must be {value!r}. Got {getattr(self, name)!r} instead."
                )
        return self


class Agreement(NamedTuple):
    """What follows from two numbers and a tolerance."""

    absolute_diff: float | None
    relative_diff: float | None  # in percent of the paper's value, without sign; None: the paper's value is 0
    equal_as_printed: bool
    within_tolerance: bool
    better: bool | None  # whether the difference favors us; None: the direction is not known, or there is none
    status: ComparisonStatus


def judge(
    paper: Quantity,
    ours: float | None,
    absolute: float | None,
    relative: float | None,
    *,
    higher_is_better: bool | None = None,
    decimals: int | None = None,
) -> Agreement:
    """Compare two numbers in decimal arithmetic, so that 1 % is 1 % whether in percent or as a fraction.

    `relative` is in percent, `decimals` are those to which digits can be equal, if not the printed ones.
    A number that is not finite is missing, whatever the tolerance.
    """
    if ours is None or not math.isfinite(ours):
        return Agreement(None, None, equal_as_printed=False, within_tolerance=False, better=None, status="missing")
    reference, difference = to_decimal(paper.value), to_decimal(ours) - to_decimal(paper.value)
    size = abs(difference)
    share = size / abs(reference) if reference else None
    equal = size <= halve_last_digit(paper.decimals if decimals is None else decimals)
    within = (
        equal
        or (absolute is not None and size <= to_decimal(absolute))
        or (relative is not None and share is not None and share <= to_decimal(relative) / 100)
    )
    better = None if higher_is_better is None or not difference else (difference > 0) == higher_is_better
    return Agreement(
        _to_float(size),
        None if share is None else _to_float(share * 100),
        equal_as_printed=equal,
        within_tolerance=within,
        better=better,
        status=_choose_status(share, equal=equal, within=within, better=bool(better)),
    )


def _choose_status(share: Decimal | None, *, equal: bool, within: bool, better: bool) -> ComparisonStatus:
    """By the size of the difference. `better` stands for what would be neither a match nor close."""
    if equal or (share is not None and share < MATCH):
        return "match"
    if share is not None and share < CLOSE:
        return "close"
    if better:
        return "better"
    if within:
        return "within_tolerance"
    return "deviation" if share is not None and share < LARGE else "significant_deviation"


def halve_last_digit(decimals: int) -> Decimal:
    """Half of the last digit of a number with so many decimals: what rounding may take away."""
    return Decimal(5).scaleb(-max(-400, min(decimals, 400)) - 1)  # no float has more


def to_decimal(value: float) -> Decimal:
    """The decimal number that a float is written as."""
    return Decimal(repr(float(value)))


def _to_float(value: Decimal) -> float | None:
    return found if math.isfinite(found := float(value)) else None


def combine_stds(first: float | None, second: float | None) -> float | None:
    """The standard deviation of a difference; None where neither side has one that is not 0."""
    return math.hypot(first or 0.0, second or 0.0) or None


class MetricComparison(_Concluded):
    """One metric of a row on a data set, in the unit of the paper."""

    metric_name: str
    kind: MetricKind
    unit: str = ""
    paper_value: float
    paper_printed: str  # the digits of the paper, which are all that can be equal
    paper_decimals: int  # to how many decimals; more than are printed where a lone digit says too little
    paper_std: float | None = None
    paper_std_printed: str = ""
    paper_std_over: StdOver | None = None
    our_value: float | None = None  # the mean of the repeats; also of those that are left where some failed
    our_std: float | None = None
    our_std_over: StdOver | None = None
    n: Annotated[int, Ge(0)] = 0
    complete: bool  # whether every repeat gave a value; else it is missing, whatever the value
    tolerance_absolute: float | None
    tolerance_relative: float | None  # in percent
    tolerance_source: str
    higher_is_better: bool | None = None  # None: not known
    explanation: str | None = None
    notes: tuple[str, ...] = ()

    # What follows from the above.
    absolute_diff: float | None
    relative_diff: float | None
    equal_as_printed: bool
    within_tolerance: bool
    better: bool | None
    status: ComparisonStatus
    z_score: float | None

    @classmethod
    def derive(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        printed = Quantity.read(given["paper_printed"])
        if printed is None or printed.value != given["paper_value"]:
            raise FileFormatError(
                f"The 'paper_value' of the metric '{given['metric_name']}' must be the printed "
                f"{given['paper_printed']}. Got {given['paper_value']!r} instead."
            )
        ours = given.get("our_value") if given["complete"] else None
        spread = combine_stds(given.get("paper_std"), given.get("our_std"))
        z = None if ours is None or spread is None else (ours - printed.value) / spread
        return {**_judge(given, ours)._asdict(), "z_score": z if z is None or math.isfinite(z) else None}

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.our_value is None else _to_float(to_decimal(self.our_value) - to_decimal(self.paper_value))

    @property
    def observations(self) -> int:
        """How many repeats count: those that all gave the same are one, for the seed has no effect on them."""
        return min(self.n, 1) if self.our_std == 0 and self.kind != "parameters" else self.n

    def judges_alike(self, ours: float) -> bool:
        """Whether another number in place of ours, such as a rounded one, would be judged as ours is."""
        other = _judge(self.__dict__, ours)
        return not self.complete or (other.status, other.within_tolerance) == (self.status, self.within_tolerance)


def _judge(given: Mapping[str, Any], ours: float | None) -> Agreement:
    paper = Quantity(value=given["paper_value"], printed=given["paper_printed"])
    return judge(
        paper,
        ours,
        given["tolerance_absolute"],
        given["tolerance_relative"],
        higher_is_better=given.get("higher_is_better"),
        decimals=max(paper.decimals, given["paper_decimals"]),
    )


NOT_STATED, NOT_RECORDED = "not stated", "not recorded"  # what the paper, and what our run, does not tell


class ConditionDifference(Model):
    """Something that was not the same in the paper and here, or of which one side does not tell."""

    what: str
    where: tuple[str, ...] = ()  # the tables, or rows with their data sets, concerned; none: everywhere
    paper: str
    ours: str


class TargetComparison(TargetRecord):
    title: str = ""  # of the table
    metrics: tuple[MetricComparison, ...] = ()  # none: the specification has no values to compare with
    paper_conditions: dict[str, str] = Field(default_factory=dict)
    our_conditions: dict[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()  # the paper's

    @property
    def place(self) -> str:
        """The table, the row and the data set."""
        return ": ".join(filter(None, [self.table, ", ".join(filter(None, [self.row, self.dataset]))]))

    @property
    def statuses(self) -> tuple[ComparisonStatus, ...]:
        """One per metric; a target without any is missing."""
        return tuple(metric.status for metric in self.metrics) or ("missing",)


class PaperComparison(Reported, _Concluded):
    """The content of `comparison.yaml`."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval paper comparison"] = "boosters-eval paper comparison"
    paper: str
    arxiv_id: str | None = None
    source: str = ""
    date: str = ""  # of the run
    hardware: str = ""  # ours
    specification_digest: str = ""
    run_id: str | None = None
    only: tuple[str, ...] = ()  # what the run was restricted to
    environment: dict[str, str] = Field(default_factory=dict)
    targets: tuple[TargetComparison, ...]
    conditions: tuple[str, ...] = ()  # what the paper says about how its numbers came about
    differences: tuple[ConditionDifference, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # that were written with it

    # What follows from the targets.
    counts: dict[ComparisonStatus, int]
    verdict: PaperVerdict
    confidence: Confidence
    exit_code: int

    @classmethod
    def derive(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        targets = given["targets"]
        found = Counter(status for target in targets for status in target.statuses)
        counted = PrimaryCounts.of(targets, restricted=bool(given["only"]))
        return {
            "counts": {status: found[status] for status in get_args(ComparisonStatus)},
            "verdict": counted.verdict,
            "confidence": counted.confidence,
            "exit_code": int(counted.exit_code),
        }

    def document(self) -> Document:
        from boosters_eval.programs.paper.document import lay_out_comparison  # noqa: PLC0415 (it reads this)

        return lay_out_comparison(self)

    def to_yaml(self) -> str:
        """The file `comparison.yaml`."""
        return dump_yaml(self.model_dump(mode="json"))

    @property
    def primary_counts(self) -> PrimaryCounts:
        """What the verdict and the confidence are made from."""
        return PrimaryCounts.of(self.targets, restricted=bool(self.only))


class PrimaryCounts(NamedTuple):
    """Counts over the primary comparisons, and what is missing of the others."""

    comparisons: int
    matched: int  # match or close, and within tolerance
    within: int
    worse: int  # outside tolerance, and not better
    significant: int
    missing: int
    repeats: int  # the fewest of any comparison; those that are all the same are one
    unfinished: int  # secondary comparisons that are missing
    restricted: bool  # whether the run left targets out

    @classmethod
    def of(cls, targets: tuple[TargetComparison, ...], *, restricted: bool) -> Self:
        """Count. A target without metrics is one comparison that is missing."""
        found = [metric for target in targets if target.primary for metric in target.metrics]
        empty = sum(target.primary and not target.metrics for target in targets)
        present = [metric for metric in found if metric.status != "missing"]
        return cls(
            comparisons=len(found) + empty,
            matched=sum(metric.within_tolerance and metric.status in ("match", "close") for metric in found),
            within=sum(metric.within_tolerance for metric in found),
            worse=sum(not metric.within_tolerance and metric.better is not True for metric in present),
            significant=sum(metric.status == "significant_deviation" for metric in found),
            missing=len(found) - len(present) + empty,
            repeats=min((metric.observations for metric in present), default=0),
            unfinished=sum(target.statuses.count("missing") for target in targets if not target.primary),
            restricted=restricted,
        )

    @property
    def verdict(self) -> PaperVerdict:
        """By the rule in docs/paper.md."""
        if self.significant or 2 * self.worse > self.comparisons:
            return "not reproduced"  # whatever is missing: running it would not undo this
        if not self.comparisons or self.missing:
            return "incomplete"
        return "reproduced" if self.within == self.comparisons else "reproduced with deviations"

    @property
    def confidence(self) -> Confidence:
        """By the rule in docs/paper.md."""
        if self.verdict in ("incomplete", "not reproduced"):
            return "low"
        enough = self.comparisons >= 3 and self.repeats >= 3 and not self.restricted
        agreeing = self.verdict == "reproduced" and 5 * self.matched >= 4 * self.comparisons
        return "high" if enough and agreeing else "medium"

    @property
    def exit_code(self) -> ExitCode:
        """A deviation takes precedence over what is missing: running that would not undo it."""
        if self.within + self.missing < self.comparisons:
            return ExitCode.REGRESSION
        absent = self.missing or self.unfinished or not self.comparisons
        return ExitCode.EXECUTION_ERROR if absent else ExitCode.SUCCESS


def read_stored(path: Path | _AnyModel, model: type[_AnyModel]) -> _AnyModel:
    """What `paper run` or `paper compare` wrote. A verdict that does not follow from its numbers is refused."""
    if isinstance(path, model):
        return path
    assert isinstance(path, Path)  # noqa: S101 (for the type checker)
    text = read_text(path)
    data = load_json(text, str(path)) if text.lstrip().startswith("{") else parse_yaml(text, str(path))
    kind = model.model_fields["kind"].default
    if not isinstance(data, dict) or data.get("kind") != kind:
        got = f"'{data['kind']}'" if isinstance(data, dict) and "kind" in data else "no 'kind'"
        command = kind.rpartition(" ")[2].replace("results", "run").replace("comparison", "compare")
        raise FileFormatError(f"{path} must be what 'paper {command}' writes, of the kind '{kind}'. Got {got} instead.")
    check_format(data.get("schema_version"), str(path), f"a '{kind}' file")
    try:
        return model.model_validate(data)
    except ConfigError as error:
        raise FileFormatError(f"{path}: {error}") from None
