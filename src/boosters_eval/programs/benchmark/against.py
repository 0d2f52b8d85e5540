"""Is any competitor worse than the one that it is compared against? The verdict behind --against.

Three answers: worse, and shown; not worse by more than the margin, and shown; or it cannot be said, and then how large
a loss cannot be excluded.

In each benchmark, every other row is compared with the named one: in the primary metric by the verdict that the table
shows, and in timing mode also in the times of training and predicting, by the paired time test. The exit code is
one answer to all these comparisons, so Holm's correction over all of them comes on top: if nothing differs, the chance
that any is called worse is at most alpha, however many benchmarks and competitors there are. That all are not worse
needs no correction: it is claimed only if each of them was shown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import ExitCode, pick
from boosters_eval.core.text import clean, count_of
from boosters_eval.metrics import declare_metric, find, label
from boosters_eval.programs.benchmark.comparisons import compare_rows, name_test, value_of
from boosters_eval.programs.benchmark.margins import Margins
from boosters_eval.programs.benchmark.records import Unsupported
from boosters_eval.programs.benchmark.tables.contenders import group_absences, group_by_name, group_results
from boosters_eval.runners.result import BUSY_CELL
from boosters_eval.stats.inference import holm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.benchmark.records import Absence
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.stats.significance import Comparison, TestName

AgainstOutcome = Literal["worse", "not worse", "cannot say", "unanswered"]
TIMES = {"train_time_s": "training time", "predict_time_s": "prediction time"}
_FEW_SPLITS = "too few splits for a verdict"


@dataclass(frozen=True)
class RivalFinding:
    """One competitor against the named one, in one quantity of one benchmark."""

    benchmark: str
    rival: str
    metric: str  # empty if nothing could be compared
    quantity: str  # the metric as a person reads it
    higher_is_better: bool = False
    comparison: Comparison | None = None  # of the rival with the named one
    p_family: float | None = None  # corrected by Holm over all comparisons
    fails: bool = False  # worse, even after that correction
    missing: str = ""  # why there is no answer
    apart: int = 0  # pairs of times that were measured on two machines, and are not compared
    lack: str = ""  # that splits decided, and why rows could not

    @property
    def verdict(self) -> str:
        """The rival is worse, better, equivalent or inconclusive; or unanswered."""
        return "unanswered" if self.missing or self.comparison is None else self.comparison.verdict

    @property
    def change(self) -> float | None:
        """Relative to the named one."""
        return None if self.comparison is None or self.comparison.percent is None else self.comparison.percent / 100

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the change, as the verdict was read off it."""
        found = None if self.comparison is None else self.comparison.percent_interval
        return None if found is None else (found[0] / 100, found[1] / 100)

    @property
    def loss(self) -> float | None:
        """The largest loss that the interval leaves possible, relative to the named one; None: nobody knows."""
        if self.interval is None:
            return None
        low, high = self.interval
        return max(0.0, -low if self.higher_is_better else high)

    @property
    def proven(self) -> bool:
        """Whether the whole interval says that it is not worse by more than the margin."""
        pair = self.comparison
        if pair is None or pair.interval is None or self.missing or self.fails:
            return False
        if pair.verdict == "equivalent":
            return True
        same = 0.0 if pair.ratio is None else 1.0
        low, high = pair.interval
        return (same - low if self.higher_is_better else high - same) <= (pair.region or 0.0)

    @property
    def outcome(self) -> AgainstOutcome:
        if self.fails:
            return "worse"
        return "unanswered" if self.verdict == "unanswered" else "not worse" if self.proven else "cannot say"

    @property
    def alone(self) -> bool:
        """Whether it is worse on its own, but not after the correction for all comparisons."""
        return self.verdict == "worse" and not self.fails


@dataclass(frozen=True)
class AgainstCheck:
    """All findings, and what else keeps the run from being an answer."""

    against: str
    findings: tuple[RivalFinding, ...]
    alpha: float  # for all comparisons together
    test: TestName
    problems: tuple[str, ...] = ()
    margins: Margins = field(default_factory=Margins)
    require_proof: bool = False  # whether what cannot be said fails
    skipped: tuple[str, ...] = ()  # benchmarks that no competitor supports: there is nothing to compare in them
    general: str = ""  # who is better over the data sets together, where there are enough of them

    @property
    def regressions(self) -> list[RivalFinding]:
        """What is worse."""
        return [finding for finding in self.findings if finding.fails]

    @property
    def unanswered(self) -> list[RivalFinding]:
        """What should have been compared and could not be."""
        return [finding for finding in self.findings if finding.missing]

    @property
    def compared(self) -> list[RivalFinding]:
        """What was compared; without any there is nothing to pass."""
        return [finding for finding in self.findings if finding.comparison is not None and not finding.missing]

    @property
    def unproven(self) -> list[RivalFinding]:
        """What was compared, and may be worse by more than the margin."""
        return [finding for finding in self.compared if finding.outcome == "cannot say"]

    @property
    def is_answered(self) -> bool:
        """Whether everything was compared."""
        return bool(self.compared) and not self.unanswered and not self.problems

    @property
    def proven(self) -> bool:
        """Whether everything was compared, and was shown not to be worse by more than the margin."""
        return self.outcome == "not worse"

    @property
    def n_tests(self) -> int:
        """How many p-values the correction is over."""
        return sum(finding.p_family is not None for finding in self.findings)

    @property
    def decided_by(self) -> str:
        """The test that decided on scores: the one that was asked for, or that of splits where no rows could be."""
        return name_test(self.test, [finding.comparison for finding in self.compared if finding.comparison])

    def is_failing(self, finding: RivalFinding) -> bool:
        """Whether it alone makes the exit code 1."""
        return finding.fails or (self.require_proof and finding.outcome == "cannot say")

    @property
    def exit_code(self) -> ExitCode:
        """A regression outranks a missing answer, and that a missing proof; no comparison at all is not a pass."""
        if self.regressions:
            return ExitCode.REGRESSION
        if not self.is_answered:
            return ExitCode.EXECUTION_ERROR
        return ExitCode.REGRESSION if self.require_proof and self.unproven else ExitCode.SUCCESS

    @property
    def outcome(self) -> AgainstOutcome:
        """The answer to all comparisons together."""
        if self.regressions:
            return "worse"
        return "unanswered" if not self.is_answered else "cannot say" if self.unproven else "not worse"

    @property
    def passed(self) -> bool:
        """Whether everything was compared, and nothing was shown to be worse; `proven` says more."""
        return self.exit_code is ExitCode.SUCCESS


def check_against(
    collection: ResultCollection,
    against: str,
    *,
    test: TestName = "rows",
    alpha: float | None = None,
    margin: Any = None,
    require_proof: bool = False,
) -> AgainstCheck:
    """Compare every other competitor with the one of that name; without `alpha`, the level is the run's, or 5 %."""
    for name, better in collection.metadata.user_metrics.items():
        declare_metric(name, higher_is_better=better)
    absent = group_absences(collection)
    tables = {name: list(rows.values()) for name, rows in group_results(collection).items()}
    present = [row.name for rows in tables.values() for row in rows]
    against = pick(
        "competitor", against, [*present, *(_absent_name(item) for items in absent.values() for item in items)]
    )
    level, margins = collection.metadata.level(alpha), collection.metadata.margins(margin)
    unfair = collection.metadata.unfair_times
    found = [
        finding
        for name, rows in tables.items()
        for finding in _Benchmark(
            clean(name), against, rows, absent.get(name, []), test, level, unfair, margins
        ).findings()
    ]
    skipped = tuple(
        f"{clean(name)}: {'; '.join(dict.fromkeys(item.reason.rstrip('.') for item in items))}"
        for name, items in absent.items()
        if name not in tables and all(isinstance(item, Unsupported) for item in items)
    )
    problems = tuple(_problems(collection))
    judged = tuple(_corrected(found, level))
    return AgainstCheck(against, judged, level, test, problems, margins, require_proof, skipped)


@dataclass(frozen=True)
class _Benchmark:
    name: str
    against: str
    rows: Sequence[Contender]
    absent: Sequence[Absence]
    test: TestName
    alpha: float
    unfair_times: str  # why no time of the run is judged
    margins: Margins

    def findings(self) -> Iterator[RivalFinding]:
        """One per rival and quantity; where one of the two has no results, one per rival."""
        rows = {row.name: row for row in self.rows}
        # A library that is unavailable is a problem of the whole run.
        reasons = {_absent_name(item): item.reason for item in self.absent if isinstance(item, Unsupported)}
        ours = rows.get(self.against)
        if ours is None or not ours.results:
            # Also where the other one failed too: a benchmark that nobody finished was not passed.
            why = self._explain_absence(ours, reasons.get(self.against, ""), self.against)
            yield from (self._unanswered(name, why) for name in rows if name != self.against)
            if rows.keys() == {self.against}:
                yield from (self._unanswered(name, why) for name in reasons)
            return
        for name in [*rows, *(name for name in reasons if name not in rows)]:
            if name == self.against:
                continue
            rival = rows.get(name)
            if rival is None or not rival.results:
                yield self._unanswered(name, self._explain_absence(rival, reasons.get(name, ""), name))
            else:
                yield from self._compared(ours, rival)

    def _explain_absence(self, row: Contender | None, reason: str, name: str) -> str:
        if row is not None:
            return f"every cell of {name} failed"
        return f"{name} has no cells: {reason.rstrip('.')}" if reason else f"{name} has no cells"

    def _unanswered(self, rival: str, why: str) -> RivalFinding:
        return RivalFinding(self.name, rival, "", "", missing=why)

    def _compared(self, ours: Contender, rival: Contender) -> Iterator[RivalFinding]:
        results = [*ours.results, *rival.results]
        failed = ", ".join(
            f"{len(row.errors)} of {len(row.errors) + len(row.results)} cells of {row.name} failed"
            for row in (ours, rival)
            if row.errors
        )
        metric = next((result.primary_metric or next(iter(result.metrics), "") for result in results), "")
        known = find(metric)
        if known is None:
            why = f"whether a higher or a lower {metric} is better is not known here" if metric else "nothing measured"
            yield RivalFinding(self.name, rival.name, metric, metric, missing=why)
        else:
            table = compare_rows(
                group_by_name(self.rows),
                metric,
                higher_is_better=known.higher_is_better,
                test=self.test,
                alpha=self.alpha,
                evidence=ours.evidence,
                margins=self.margins,
            )
            sides = {rival.name, ours.name}
            pair = table.ruled(rival.name, ours.name) if sides <= table.summaries.keys() else None
            incomplete = failed or _without_partner(ours, rival, metric)
            found = self._finding(rival, metric, known.higher_is_better, pair, incomplete)
            by_splits = self.test == "rows" and pair is not None and pair.test == "corrected"
            lack = ours.evidence.tell_lack(results, metric) if by_splits and ours.evidence else ""
            yield replace(found, lack=lack)
        if any(result.timing_mode for result in results):
            yield from (self._timed(ours, rival, metric, failed) for metric in TIMES)

    def _timed(self, ours: Contender, rival: Contender, metric: str, incomplete: str) -> RivalFinding:
        """By the paired time test on the ratios of the two; a busy machine has no answer."""
        results = [*ours.results, *rival.results]
        unfair = self.unfair_times or ("" if all(result.fairly_timed for result in results) else BUSY_CELL)
        pair = None
        if not unfair:
            by: Any = {"test": "paired", "alpha": self.alpha, "margins": self.margins}
            table = compare_rows(group_by_name([rival, ours]), metric, higher_is_better=False, **by)
            pair = table.pairs.get((rival.name, ours.name))
        why = f"times are not judged: {unfair}" if unfair else incomplete or _without_partner(ours, rival, metric)
        placed = {result.repeat: result.machine for result in ours.results}
        apart = sum(placed.get(result.repeat, result.machine) != result.machine for result in rival.results)
        return replace(self._finding(rival, metric, False, pair, why), apart=apart)

    def _finding(
        self, rival: Contender, metric: str, higher_is_better: bool, pair: Comparison | None, incomplete: str
    ) -> RivalFinding:
        missing = incomplete
        if not missing and pair is None:
            missing = "not measured on both sides"
        elif not missing and pair is not None and pair.verdict == "inconclusive" and not pair.could_reject:
            missing = pair.note.rstrip(".") or _FEW_SPLITS
        quantity = TIMES.get(metric) or label(metric)
        return RivalFinding(self.name, rival.name, metric, quantity, higher_is_better, pair, missing=missing)


def _corrected(found: Sequence[RivalFinding], alpha: float) -> list[RivalFinding]:
    """The findings with Holm's p-values. A verdict of the table counts if it holds among all comparisons."""
    tested = [i for i, f in enumerate(found) if f.comparison is not None and f.comparison.p_value is not None]
    adjusted = holm([found[i].comparison.p_value for i in tested])  # type: ignore[union-attr,misc]
    family = dict(zip(tested, adjusted, strict=True))
    out = []
    for index, finding in enumerate(found):
        p = family.get(index)
        worse = finding.comparison is not None and finding.comparison.verdict == "worse"
        out.append(replace(finding, p_family=p, fails=worse and p is not None and p <= alpha))
    return out


def _problems(collection: ResultCollection) -> Iterator[str]:
    metadata = collection.metadata
    if metadata.n_missing:
        yield f"{metadata.n_missing} of {metadata.n_cells} cells have no outcome"
    if metadata.unfinished_attempt:
        yield f"attempt {metadata.unfinished_attempt} of the run is unfinished"
    for library, reason in {item.library: item.reason for item in collection.unavailable}.items():
        yield f"{library} is unavailable: {reason.rstrip('.')}"
    for library, cells in Counter(result.library for result in collection.flaky).items():
        yield f"{count_of(cells, 'cell')} of {library} finished only after failing"


def _without_partner(ours: Contender, rival: Contender, metric: str) -> str:
    """Which of the two lacks values that the other one has; a split that only one could be scored on is no pass."""
    mine, theirs = ({r.repeat for r in row.results if value_of(r, metric) is not None} for row in (ours, rival))
    if not mine & theirs:
        return ""  # nothing can be compared, which is said as such
    lacking = [(row.name, len(values)) for row, values in ((ours, theirs - mine), (rival, mine - theirs)) if values]
    return ", ".join(f"{name} lacks {count_of(count, 'value')} that the other one has" for name, count in lacking)


def _absent_name(item: Absence) -> str:
    return clean(item.library if item.variant is None else f"{item.library} {item.variant}")
