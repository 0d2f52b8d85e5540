"""From what a paper prints and what was measured to a comparison, and what was not the same in the paper and here."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from boosters_eval import metrics
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.programs.paper.comparison import (
    NOT_RECORDED,
    NOT_STATED,
    ConditionDifference,
    Measured,
    MetricComparison,
    PaperComparison,
    PaperResults,
    TargetComparison,
    TargetRecord,
    combine_stds,
    read_stored,
    to_decimal,
)
from boosters_eval.programs.paper.document import (
    list_deviations,
    show_metric,
)
from boosters_eval.programs.paper.own import read_own, target_what_is_there
from boosters_eval.programs.paper.request import FORMATS
from boosters_eval.programs.paper.specification import digest_specification, read_specification
from boosters_eval.programs.paper.targets import find_targets, is_selected
from boosters_eval.programs.paper.tolerances import (
    FRACTION,
    PERCENT,
    PrintedUnit,
    canonicalize,
    classify_metric,
    find_metric,
    find_tolerance,
    is_share,
)
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.reports.numbers import mean_and_std, number
from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.request import ComparePaperRequest, ReportPaperRequest
    from boosters_eval.programs.paper.specification import PaperDataset, PaperResult, PaperSpecification, PaperTable
    from boosters_eval.programs.paper.targets import PaperTarget
    from boosters_eval.reports.document import Document

_FEWEST_DECIMALS = 2  # of a fraction: whole percents


def compare_results(
    spec: PaperSpecification, results: PaperResults, *, digest: str | None = None, files: Sequence[str] = ()
) -> PaperComparison:
    """Compare every target of the specification; one that was not measured is missing.

    `digest` is that of the specification file: results of another one are compared, but the report says so.
    """
    if results.paper != spec.paper:
        raise ConfigError(f"The results are of '{results.paper}', but the specification is of '{spec.paper}'.")
    measured = {(one.table, one.row, one.dataset): one for one in results.targets}
    if len(measured) < len(results.targets):
        raise ConfigError("The results have a target more than once.")
    claims = {(claim.table.id, claim.row, claim.dataset_name): claim for claim in find_targets(spec, Path())}
    stray = next((text for text in results.only if not any(is_selected(one, [text]) for one in claims.values())), None)
    if stray is not None:
        raise ConfigError(f"The run was restricted to '{stray}', which is no target of the specification.")
    wanted = {key: claim for key, claim in claims.items() if key in measured or is_selected(claim, results.only)}
    targets = tuple(_compare_target(claim, measured.get(key)) for key, claim in wanted.items())
    notes = [f"'{': '.join(filter(None, key))}' was run, but is no target." for key in measured if key not in claims]
    if digest is not None and digest != results.specification_digest:
        notes.append("The specification is not the one of the run: it has been changed since, or it is another file.")
    if results.only:
        notes.append(f"The run was restricted to {', '.join(results.only)}: nothing else was judged.")
    return PaperComparison.of(
        targets=targets,
        paper=spec.paper,
        arxiv_id=spec.arxiv_id,
        source=spec.source,
        date=results.environment.get("started_at", "").partition("T")[0],
        hardware=_describe_hardware(results.environment),
        specification_digest=results.specification_digest,
        run_id=results.run_id,
        only=results.only,
        environment=results.environment,
        conditions=_list_conditions(spec, {target.table for target in targets}),
        differences=_find_differences(spec, results, targets),
        notes=tuple(notes),
        files=tuple(files),
    )


def _compare_target(claim: PaperTarget, measured: Measured | None) -> TargetComparison:
    table, printed, dataset = claim.table, claim.result, claim.dataset_name
    known = {"table": table.id, "row": claim.row, "dataset": dataset, "primary": claim.primary}
    measured = measured or Measured(**known, status="not_runnable", reason="It was not run.")
    shared = {name: getattr(measured, name) for name in TargetRecord.model_fields}
    found = TargetComparison(
        **{**shared, "primary": claim.primary, "reason": _find_failure(measured)},
        title=table.title,
        our_conditions=measured.conditions,
    )
    if printed is None:
        what = "".join([f" of '{claim.row}'" if claim.row else "", f" on '{dataset}'" if dataset else ""])
        return found.replace(reason=f"The specification has no values{what} in '{table.id}' to compare with.")
    return found.replace(
        metrics=tuple(_compare_metric(table, printed, measured, name) for name in printed.values),
        paper_conditions=_collect_conditions(printed, table.dataset(dataset)),
        notes=printed.notes,
    )


def _find_failure(measured: Measured) -> str:
    return measured.reason or ("" if measured.status == "ok" else "It failed, and the results do not say why.")


def _compare_metric(table: PaperTable, printed: PaperResult, measured: Measured, name: str) -> MetricComparison:
    paper, std = printed.values[name], printed.stds.get(name)
    kind, stated = classify_metric(name, printed.units.get(name))
    # A metric may be spelt differently here: `Log loss` as `logloss`.
    alike = (own for own in measured.values if canonicalize(own) == canonicalize(name))
    own = name if name in measured.values else next(alike, name)
    values = measured.values.get(own, ())
    units = _find_units(table, name, stated, own, values)
    tolerance = find_tolerance(table, name, kind, units.paper)
    scaled = (
        [] if units.fault else [float(to_decimal(value) * units.factor) for value in values if math.isfinite(value)]
    )
    mean, spread = (scaled[0], 0.0) if len(scaled) > 1 and len(set(scaled)) == 1 else mean_and_std(scaled)
    summary = measured.summaries.get(own)
    if summary is not None and mean is not None:
        spread = None if summary.std is None else float(to_decimal(summary.std) * abs(units.factor))
    if mean is not None and not math.isfinite(mean):
        mean = spread = None
    reason = _find_gap(measured, name, values, whole=own in measured.summaries) or units.fault
    if mean is None and not reason:
        reason = f"'{name}' is too large to be averaged."
    found = MetricComparison.of(
        metric_name=name,
        kind=kind,
        unit=units.paper.name if units.paper and units.paper != FRACTION else "",
        paper_value=paper.value,
        paper_printed=paper.printed,
        paper_decimals=_count_decimals(table, printed, name, units.paper),
        paper_std=None if std is None else std.value,
        paper_std_printed="" if std is None else std.printed,
        paper_std_over=None if std is None else printed.std_over or table.std_over,
        our_value=mean,
        our_std=spread,
        our_std_over=None if spread is None else measured.std_over,
        n=summary.n if summary is not None and scaled else len(scaled),
        complete=not reason,
        tolerance_absolute=None if tolerance.absolute is None else float(tolerance.absolute),
        tolerance_relative=None if tolerance.relative is None else float(tolerance.relative * 100),
        tolerance_source=tolerance.source,
        higher_is_better=_find_direction(table, name),
        notes=units.notes,
    )
    return found.replace(explanation=reason or _explain(found))


def _count_decimals(table: PaperTable, printed: PaperResult, name: str, unit: PrintedUnit | None) -> int:
    """To how many decimals our value can be equal to the printed one.

    A fraction counts as printed to a hundredth at least, as does a bare 0: an accuracy of 1.0 is not equal to 0.95.
    A lone digit says too little, too: it counts as printed like the rest of its column, and 5e3 as all of 5000.
    """
    own = printed.values[name]
    coarse = unit == FRACTION or (not own.value and own.decimals <= 0)
    least = max(own.decimals, _FEWEST_DECIMALS) if coarse else own.decimals
    if len(re.sub(r"[eE].*|\D", "", own.printed).lstrip("0")) > 1:
        return least
    alike = (result for result in table.results if result.dataset == printed.dataset and name in result.values)
    column = [one.values[name].decimals for one in alike if one.units.get(name) == printed.units.get(name)]
    return max([*column, least, 0])


def _find_gap(measured: Measured, name: str, values: Sequence[float], *, whole: bool) -> str:
    """Why our values prove nothing, or nothing."""
    if measured.status != "ok":
        return _find_failure(measured)
    if not values:
        return f"'{name}' was not computed."
    if not all(map(math.isfinite, values)):
        return f"'{name}' is not finite in {sum(not math.isfinite(v) for v in values)} of {len(values)} repeats."
    if len(values) < measured.planned and not whole:
        return f"'{name}' has values from {len(values)} of {measured.planned} repeats only."
    return ""


def _find_direction(table: PaperTable, name: str) -> bool | None:
    """Whether higher is better: as the program knows, else as the table says. A contradiction is refused."""
    known = find_metric(name)
    sure = known.higher_is_better if known is not None else False if name in metrics.RESOURCES else None
    said = {"lower": False, "higher": True}.get(table.directions.get(name, ""))
    names = {metric for result in table.results for metric in result.values}
    main = table.primary_metric or (name if len(names) == 1 else None)
    if said is None and name == main and table.lower_is_better is not None:
        said = not table.lower_is_better
    if sure is not None and said is not None and sure is not said:
        raise ConfigError(
            f"'{table.id}' says that of the metric '{name}' {'higher' if said else 'lower'} is better, "
            f"but {'higher' if sure else 'lower'} is."
        )
    return said if sure is None else sure


class _Units(NamedTuple):
    paper: PrintedUnit | None
    factor: Decimal = Decimal(1)  # from ours to the paper's
    notes: tuple[str, ...] = ()
    fault: str = ""  # why they cannot be compared


def _find_units(table: PaperTable, name: str, stated: PrintedUnit | None, own: str, values: Sequence[float]) -> _Units:
    """The units of the paper's values and of ours: as stated, or by a rule that a note tells of; never a guess.

    A share is at most 1 by definition, so values beyond 1 can only be in percent.
    """
    paper = stated
    if paper is None and is_share(name):
        paper = _infer_share([result.values[name].value for result in table.results if name in result.values])
    if not values:
        return _Units(paper)
    given = table.our_units.get(name)
    ours = classify_metric(own, given)[1] if given or not is_share(name) else None
    if ours is None and paper is not None and paper.dimension == "share":
        return _infer_units(name, paper, _infer_share(values))
    if ours is None or ours == paper:
        return _Units(paper)
    if paper is None or paper.dimension is None or ours.dimension != paper.dimension:
        their = f"in '{paper.name}'" if paper else "without a unit"
        raise ConfigError(f"'{table.id}' has '{name}' {their}, but ours is in '{ours.name}': state both units.")
    return _Units(paper, ours.factor / paper.factor)


def _infer_share(values: Sequence[float]) -> PrintedUnit:
    return FRACTION if max((abs(value) for value in values if math.isfinite(value)), default=0) <= 1 else PERCENT


def _infer_units(name: str, paper: PrintedUnit, ours: PrintedUnit) -> _Units:
    """Our unit is not stated: of a share its size tells, of anything else only if it is as the paper's."""
    if ours == paper:
        return _Units(paper)
    if not is_share(name):
        fault = f"Whether our '{name}' is in percent or a fraction is not known: state it in 'our_units'."
        return _Units(paper, fault=fault)
    here, there = ("a fraction", "in percent") if ours == FRACTION else ("in percent", "a fraction")
    size = "no value is beyond 1" if ours == FRACTION else "a value is beyond 1"
    return _Units(paper, ours.factor / paper.factor, (f"Ours is {here}, because {size}; the paper's is {there}.",))


def _explain(found: MetricComparison) -> str | None:
    """What a reader must know of a comparison beyond its status."""
    parts = []
    if found.observations < found.n:
        parts.append(f"All {found.n} repeats gave the same: the seed has no effect, so they are one observation.")
    if found.equal_as_printed and found.relative_diff:
        parts.append("Equal to all digits that the paper prints.")
    if not found.within_tolerance:
        side = {True: "better", False: "worse", None: "different"}[found.better]
        shown = show_metric(found)
        parts.append(f"Ours is {side}: {shown.difference} is outside the tolerance of {shown.tolerance}.")
    if found.z_score is not None:
        spread = number(combine_stds(found.paper_std, found.our_std) or math.nan, 2)
        theirs = _describe_std("the paper", found.paper_std, found.paper_std_over)
        ours = _describe_std("ours", found.our_std, found.our_std_over)
        z = number(found.z_score, 2)
        parts.append(f"z = {z} by the combined standard deviation of {spread} ({theirs}; {ours}, n = {found.n}).")
        if found.paper_std_over == "seeds":
            parts.append(
                f"The paper's standard deviation is over seeds only, not over splits of the data{_alone(found)}."
            )
    return " ".join(parts) or None


def _alone(found: MetricComparison) -> str:
    if not found.paper_std or found.our_std_over == "seeds":
        return ""
    sigmas = abs(found.difference or 0.0) / found.paper_std
    return f"; by it alone the difference would be {number(sigmas, 2)} standard deviations"


def _describe_std(side: str, std: float | None, over: str | None) -> str:
    return f"{side}: none" if std is None else f"{side}: {number(std, 2)} over {over or 'what is not stated'}"


def _collect_conditions(printed: PaperResult, dataset: PaperDataset) -> dict[str, str]:
    """The paper's conditions of a result as text, those of its data set included."""
    found = {"split": dataset.split, "preprocessing": dataset.preprocessing, "hardware": printed.hardware or ""}
    stated = {name: value for name, value in found.items() if value}
    for name, value in printed.conditions.items():
        stated[name] = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    return stated


def _list_conditions(spec: PaperSpecification, tables: set[str]) -> tuple[str, ...]:
    """What the specification says of all rows, and of those of these tables."""
    said = spec.conditions
    stated = {"hardware": said.hardware, **{f"version of {name}": version for name, version in said.versions.items()}}
    general = [f"{name}: {value}" for name, value in {**stated, "seeds": said.seeds}.items() if value is not None]
    own = [f"{table.id}: {note}" for table in spec.tables if table.id in tables for note in table.notes]
    return (*general, *said.notes, *own)


def _describe_hardware(environment: Mapping[str, str]) -> str:
    """Our machine in a few words, as the run recorded it."""
    parts = {"cpu_model": "{}", "cpu_cores": "{} cores", "memory_gb": "{} GB"}
    return ", ".join(text.format(environment[name]) for name, text in parts.items() if environment.get(name))


def _find_differences(
    spec: PaperSpecification, results: PaperResults, targets: Sequence[TargetComparison]
) -> tuple[ConditionDifference, ...]:
    """Everything that the paper states or our run records, and in which they differ or one of them says nothing."""
    found: dict[tuple[str, str, str], list[TargetComparison]] = {}
    ran = [target for target in targets if target.status == "ok"]
    libraries = {name.lower() for target in ran for name in target.versions} | set(RUNNERS)
    for target in ran:
        paper, ours = _state_conditions(spec, results.environment, target, libraries)
        for what in dict.fromkeys([*ours, *paper]):
            theirs, mine = paper.get(what), ours.get(what)
            same = _is_same_version if what.startswith("version of ") else _is_same_text
            if (theirs or mine) and not (theirs and mine and same(theirs, mine)):
                found.setdefault((what, theirs or NOT_STATED, mine or NOT_RECORDED), []).append(target)
    return tuple(
        ConditionDifference(what=what, where=_name_places(where, ran), paper=paper, ours=ours)
        for (what, paper, ours), where in found.items()
    )


def _state_conditions(
    spec: PaperSpecification, environment: Mapping[str, str], target: TargetComparison, libraries: set[str]
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """How the paper's numbers and ours came about. Of a library, only the version that ran the target counts."""
    said, table = spec.conditions, spec.table(target.table)
    hardware = target.paper_conditions.get("hardware") or (table and table.hardware) or said.hardware
    stated = {name.lower(): version for name, version in said.versions.items()}
    others = {name: version for name, version in said.versions.items() if name.lower() not in libraries}
    deviating = next((it for it in target.metrics if it.paper_std is not None and it.our_std is not None), None)
    known = {_normalize(name): value for name, value in target.our_conditions.items()}
    conditions = {name: value for name, value in target.paper_conditions.items() if name != "hardware"}
    paper = {
        "hardware": hardware,
        **{f"version of {name}": stated.get(name.lower()) for name in target.versions},
        "number of seeds": str(said.seeds or ""),
        "standard deviation over": deviating.paper_std_over if deviating else None,
        **{name.replace("_", " "): value for name, value in conditions.items()},
        **{f"version of {name}": version for name, version in others.items()},
    }
    ours = {
        "hardware": _describe_hardware(environment),
        **{f"version of {name}": version for name, version in target.versions.items()},
        "number of seeds": str(len(target.seeds) or ""),
        "standard deviation over": deviating.our_std_over if deviating else None,
        **{name.replace("_", " "): known.get(_normalize(name)) for name in conditions},
        **{f"version of {name}": environment.get(name.lower()) for name in others},
    }
    return paper, ours


def _name_places(where: Sequence[TargetComparison], ran: Sequence[TargetComparison]) -> tuple[str, ...]:
    """As few names as say where: nothing for everywhere, a table for all of its rows."""
    if len(where) == len(ran):
        return ()
    counts = Counter(target.table for target in ran)
    whole = {table for table, count in Counter(target.table for target in where).items() if count == counts[table]}
    return tuple(dict.fromkeys(target.table if target.table in whole else target.place for target in where))


def _is_same_version(stated: str, ours: str) -> bool:
    """A paper that states 1.4 means any 1.4.x."""
    parts = re.findall(r"[0-9a-z]+", stated.lower().removeprefix("v"))
    return parts == re.findall(r"[0-9a-z]+", ours.lower().removeprefix("v"))[: len(parts)]


def _is_same_text(stated: str, ours: str) -> bool:
    return _normalize(stated) == _normalize(ours)


def _normalize(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def compare(request: ComparePaperRequest) -> JudgedPaper:
    files = [str(path) for path in (request.results, request.output) if isinstance(path, Path)]
    spec, digest = read_specification(request.paper), digest_specification(request.paper)
    own = read_own(request.results, spec, digest) if isinstance(request.results, Path) else None
    results = own or read_stored(request.results, PaperResults)
    spec = target_what_is_there(spec, own) if own else spec
    found = compare_results(spec, results, digest=digest, files=files)
    return JudgedPaper(found, written=request.output is not None)


def report(request: ReportPaperRequest) -> PaperReport:
    return PaperReport(read_stored(request.comparison, PaperComparison))


@dataclass(frozen=True)
class PaperReport(ReportedFindings):
    """A comparison in every format. That it can be shown says nothing of its verdict."""

    comparison: PaperComparison

    def document(self) -> Document:
        return self.comparison.document()

    def to_model(self) -> PaperComparison:
        return self.comparison

    def show(self, screen: Screen) -> None:
        """All of it, because the report is what was asked for."""
        if not screen.is_terminal:
            screen.write(self.to_markdown())
            return
        from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

        print_document(self.document(), screen.console())

    def render(self, form: str) -> str:
        """The same comparison always gives the same bytes."""
        if form not in FORMATS:
            raise UnknownNameError("format", form, FORMATS)
        return self.comparison.to_yaml() if form == "yaml" else super().render(form)


@dataclass(frozen=True)
class JudgedPaper(PaperReport):
    """A comparison whose verdict is the answer."""

    plain: ClassVar[bool] = True
    written: bool = False  # to a file, so that it is shown besides

    @property
    def exit_code(self) -> int:
        return self.comparison.exit_code

    def show(self, screen: Screen) -> None:
        """The verdict and the tables; the report has the rest."""
        if not screen.quiet:
            ReportedFindings.show(self, screen)

    def conclude(self, screen: Screen) -> None:
        """What could not be compared is told even where the verdict is not shown."""
        if self.written:
            self.show(screen)
        if screen.quiet or screen.has_data:
            for place, why in list_deviations(self.comparison, missing=True):
                screen.note(f"Error: {place}: {' '.join(why)}")
