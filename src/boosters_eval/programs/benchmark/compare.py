"""The programs `compare` and `run`: from a request to the findings of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, ExitCode, UnsupportedError, pick, require
from boosters_eval.core.files import write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import given, named, tell, the
from boosters_eval.core.text import count_of
from boosters_eval.engine.session import PlannedRun, check_names
from boosters_eval.programs.benchmark.benchmarks import (
    add_defaults,
    make_comparison,
    name_variants,
    select_benchmarks,
    vary_natives,
)
from boosters_eval.programs.benchmark.planning import check_devices, native_parameters, prepare
from boosters_eval.programs.benchmark.policy import read_policy
from boosters_eval.programs.benchmark.runs import execute_prepared
from boosters_eval.programs.benchmark.spec import metric_names
from boosters_eval.programs.benchmark.suites import parse_native, parse_parameters, parse_variants
from boosters_eval.runners.parameters import Device, GrowthStrategy, Profile, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.core.findings import Screen
    from boosters_eval.datasets.config import DataAudit, DataSettings
    from boosters_eval.programs.benchmark.against import AgainstCheck
    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.request import (
        CompareRequest,
        DataParameters,
        RescoreRequest,
        SuiteRequest,
        TrainingParameters,
    )
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.reports.tables import Report

BOTH = "both"  # what `--profile` takes besides the profiles
_FEW_DATASETS, _FEW_FINDINGS = 3, 6  # whose findings are told before a run, and of each how many


def compare(request: CompareRequest) -> Findings:
    return _judge(request, prepare_comparison(request))


def run_suite(request: SuiteRequest) -> Findings:
    return _judge(request, prepare_suite(request))


def prepare_comparison(request: CompareRequest) -> PreparedRun:
    check_names(request)
    training, variants = read_training(request), request.variants
    texts, native = isinstance(variants, (tuple, list)), _is_native(request)
    benchmarks = make_comparison(
        **{**collect_arguments(request), "profile": _first_profile(request)},
        variants=None if native else parse_variants(variants, training) if texts else variants,
        metrics=metric_names(several(request.metrics)),
    )
    benchmarks = _vary(request, benchmarks)
    return prepare(benchmarks, request.seeds, request, max_seeds=request.max_seeds, budget=request.budget)


def prepare_suite(request: SuiteRequest) -> PreparedRun:
    check_names(request)
    benchmarks = select_benchmarks(
        request.suite,
        request.libraries,
        metrics=metric_names(several(request.metrics)),
        cv=request.cv,
        splits=request.splits,
        profile=_first_profile(request),
        home=request.home,
        subset=request.subset,
        skip_missing=request.skip_missing,
    )
    if request.variants and not _is_native(request):
        raise ConfigError(
            f"{the('variants')} of a suite are a library's own parameters: add {given('profile', 'defaults')}."
        )
    benchmarks = _vary(request, benchmarks)
    if request.policy is not None:
        benchmarks = replace(benchmarks, policy=read_policy(request.policy))
    return prepare(benchmarks, request.seeds, request)


def _is_native(request: CompareRequest | SuiteRequest) -> bool:
    """Whether variants name a library's own parameters: its own defaults leave no meaning to ours."""
    return bool(request.variants) and request.profile in (Profile.DEFAULTS, Profile.DEFAULTS.value)


def _vary(request: CompareRequest | SuiteRequest, benchmarks: Benchmarks) -> Benchmarks:
    if _is_native(request):
        variants = request.variants
        return vary_natives(benchmarks, variants if isinstance(variants, Mapping) else parse_native(variants))
    return add_defaults(benchmarks) if request.profile == BOTH else name_variants(benchmarks)


def _first_profile(request: CompareRequest | SuiteRequest) -> Any:
    return Profile.PARITY if request.profile == BOTH else request.profile


def collect_arguments(request: Any) -> dict[str, Any]:
    """What `make_comparison` is given, by whichever program trains models."""
    names = ("datasets", "libraries", "booster", "cv", "task", "target", "split", "splits", "profile", "home")
    found = {name: getattr(request, name) for name in names}
    return {**found, "training": read_training(request), "data": read_data_settings(request)}


def read_training(request: TrainingParameters) -> TrainingConfig:
    """The canonical parameters that were given, as one or by single options."""
    if request.training is not None:
        return request.training
    base = parse_parameters(list(request.param), TrainingConfig()) if request.param else TrainingConfig()
    if request.growth is not None:
        base = base.replace(growth_strategy=GrowthStrategy(request.growth))
    return base if request.device is None else base.replace(device=Device(request.device))


def read_data_settings(request: DataParameters) -> DataSettings | None:
    """The settings of files that were given, as one or by single options; None if there are none."""
    from boosters_eval.datasets.config import DataSettings  # noqa: PLC0415 (loads pandas)

    if request.data is not None:
        require("data", request.data, (DataSettings, Mapping), "a DataSettings or a dict of them")
        return request.data if isinstance(request.data, DataSettings) else DataSettings(**request.data)
    given = {name: value for name in DataSettings.model_fields if (value := getattr(request, name, None))}
    return DataSettings(**given) if given else None


def announce(prepared: PreparedRun) -> None:
    for sentence in prepared.notes:
        tell(f"Note: {sentence}")
    for line in _audit_lines(prepared.audits, verbose=prepared.settings.verbose):
        tell(line)
    if prepared.settings.verbose:
        for spec, target, native in native_parameters(prepared.plan):
            given = ", ".join(f"{name}={value}" for name, value in native.items())
            tell(f"{spec} {target}: {given or 'its defaults'}")


def _judge(request: CompareRequest | SuiteRequest, prepared: PreparedRun) -> Findings:
    if request.against is not None:
        _check_against(request.against, prepared)
    announce(prepared)
    if request.dry_run:
        return describe_plan(prepared)
    results = execute_prepared(prepared)
    return ComparisonFindings(results, request, answer_against(request, results))


def answer_against(
    request: CompareRequest | SuiteRequest | RescoreRequest, results: ResultCollection
) -> AgainstCheck | None:
    """The answer that --against asks for; None if nobody asked."""
    if request.against is None:
        return None
    from boosters_eval.stats.pooled import MIN_EFFECTS  # noqa: PLC0415 (loads scipy)

    check = results.regressions(request.against, test=request.test, require_proof=request.require_proof)
    if len({one.dataset_name for one in results.results}) < MIN_EFFECTS:
        return check
    from boosters_eval.programs.benchmark.tables.build import build_tables  # noqa: PLC0415 (loads what renders)
    from boosters_eval.programs.benchmark.tables.general import tell_in_general  # noqa: PLC0415

    rankings = build_tables(results, test=request.test).rankings
    return replace(check, general=tell_in_general(rankings[0]) if len(rankings) == 1 else "")


def describe_plan(prepared: PreparedRun) -> PlannedRun:
    notes: tuple[str, ...] = ()
    if prepared.growth is not None:
        first, *_, most = prepared.growth.rule.schedule
        auto = given("seeds", "auto")
        notes = (f"{auto} begins with the {first} seeds shown here, and adds more, up to {most}, as needed.",)
    refusal = ""
    try:
        check_devices(prepared.plan)
    except UnsupportedError as error:
        refusal = str(error)
    return PlannedRun.of(prepared.plan, prepared.settings, notes, refusal)


def several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _check_against(name: str, prepared: PreparedRun) -> None:
    cells = [(cell.target.name, getattr(cell.spec, "variant", None)) for cell in prepared.plan.cells]
    running = {target if variant is None else f"{target} {variant}" for target, variant in cells}
    absent = {item.target for item in (*prepared.plan.excluded, *prepared.benchmarks.unavailable)}
    name = pick("competitor", name, [*running, *absent])
    if not running - {name}:
        raise ConfigError(f"{the('against')} needs a second competitor. Got only '{name}' instead.")


def _audit_lines(audits: Mapping[str, DataAudit], *, verbose: bool) -> Iterator[str]:
    """What was found in the data: of one data set most, of a few what is grave, of many only how many have findings.

    A user's own file is described even if there is nothing to find; its task was given or inferred for a reason.
    """
    found = [audit for audit in audits.values() if audit.findings or audit.reason]
    if len(found) > _FEW_DATASETS and not verbose:
        suspicious = sum(bool(audit.findings) for audit in found)
        yield f"Data: {suspicious} of {len(audits)} data sets have findings; {named('verbose')} shows them."
        return
    for audit in found:
        if len(found) > 1 and not verbose:  # the answer tells the rest
            yield f"Data: {audit.replace(reason='').headline}"
            yield from (f"  {finding.summary}" for finding in audit.severe)
            continue
        shown = audit.findings if verbose else audit.findings[:_FEW_FINDINGS]
        yield f"Data: {audit.headline}"
        yield from (f"  {finding}" for finding in shown)
        if len(shown) < len(audit.findings):
            yield f"  and {len(audit.findings) - len(shown)} more; {named('verbose')} shows them."


@dataclass(frozen=True)
class ComparisonFindings(Findings):
    """The results of a comparison, as its request wants them judged and shown."""

    results: ResultCollection
    request: CompareRequest | SuiteRequest | RescoreRequest
    verdict: AgainstCheck | None = None

    @property
    def exit_code(self) -> int:
        """A verdict comes first; a run with errors is no success unless the user accepts errors."""
        if self.verdict is not None and self.verdict.exit_code:
            return self.verdict.exit_code
        accepted = self.request.continue_on_error and self.verdict is None
        return ExitCode.SUCCESS if is_success(self.results, continue_on_error=accepted) else ExitCode.EXECUTION_ERROR

    def show(self, screen: Screen) -> None:
        from boosters_eval.programs.benchmark.tables.brief import shorten  # noqa: PLC0415 (loads what renders)
        from boosters_eval.reports.terminal import print_document  # noqa: PLC0415

        if screen.quiet:
            print_document(self._tables().summary(), screen.console())
            return
        if not screen.is_terminal:
            screen.write(self.render("markdown"))
            return
        report = self._tables()
        document = report.document() if screen.verbose else shorten(report)
        print_document(document, screen.console(), whole=screen.verbose)
        if not screen.verbose:
            run = self.results.reference
            known = run and not self.results.metadata.rescored  # whose metrics `report` knows nothing of
            again = f", or boosters-eval report --run {run} --dry-run" if known else ""
            screen.say(f"More: -v{again}")

    def render(self, form: str) -> str:
        from boosters_eval.programs.benchmark.tables import against  # noqa: PLC0415 (loads what renders)
        from boosters_eval.programs.benchmark.tables.document import build_document  # noqa: PLC0415

        if form == "json":
            return self.results.document().model_copy(update={"answer": self._tables().answer}).dump()
        if form == "csv":
            return self.results.to_csv()
        if form == "html":
            document = build_document(self.results, "comparison", test=self.request.test)
            if self.verdict is not None:  # the first sentence of the page; the charts compare with the same one
                answer = f"{against.tell_verdict(self.verdict).rstrip(':.')}."
                found = {"answer": (answer, *document.answer), "reference": self.verdict.against}
                document = document.model_copy(update=found)
            return document.to_html()
        if form == "latex":
            return self._tables().to_latex()
        head = "" if self.verdict is None else f"{against.render_verdict(self.verdict)}\n"
        return head + self._tables().to_markdown()

    def conclude(self, screen: Screen) -> None:
        """The run and why it is no success, unless the answer tells, and the verdict unless it stands above."""
        if not screen.quiet and not (screen.is_terminal and not screen.verbose) and self.results.run_id:
            screen.note(describe_run(self.results))
        if self.verdict is not None:
            self._conclude_verdict(screen, self.verdict)
        if self.exit_code == ExitCode.EXECUTION_ERROR and (self.verdict is None or not self.verdict.exit_code):
            screen.note(explain_failure(self.results, whole=not screen.is_terminal))

    def _conclude_verdict(self, screen: Screen, verdict: AgainstCheck) -> None:
        from boosters_eval.programs.benchmark.tables import against  # noqa: PLC0415 (loads what renders)

        said = screen.note if screen.has_data else screen.say
        for line in () if screen.has_markdown else against.list_findings(verdict):
            said(line)
        if self.request.verdict is not None:
            document = against.AgainstDocument.of(verdict, self.results.run_id)
            write_atomically(self.request.verdict, document.to_json())
        screen.annotate(against.annotate_verdict(verdict), against.render_verdict(verdict))

    def _tables(self) -> Report:
        from boosters_eval.programs.benchmark.tables.build import build_tables  # noqa: PLC0415 (loads what renders)

        only = self.request.highlight_significant
        return build_tables(self.results, test=self.request.test, require_significance=only)


def is_success(results: ResultCollection, *, continue_on_error: bool) -> bool:
    """A run with errors is no success unless the user accepts errors; a run without results never is."""
    whole = results.results and not results.metadata.n_missing and not results.metadata.unfinished_attempt
    return bool(whole) and (continue_on_error or not results.errors)


def describe_run(results: ResultCollection) -> str:
    found, failed = count_of(len(results.results), "result"), count_of(len(results.errors), "error")
    return f"Run {results.reference}: {found}, {failed}."


def explain_failure(results: ResultCollection, *, whole: bool = True) -> str:
    """Why a run is no success: its output may not show it. If it does, the first failure need not be told again."""
    errors, total = results.errors, results.metadata.n_cells or len(results.results) + len(results.errors)
    if results.metadata.unfinished_attempt:
        return f"Error: attempt {results.metadata.unfinished_attempt} of run {results.run_id} is unfinished."
    if errors and not whole:
        return f"Error: {len(errors)} of {total} cells failed."
    if errors:
        first = errors[0]
        text = f"{first.error_type}: {first.error_message}".partition("\n")[0].rstrip(".")
        where = f"{first.config_name} {first.library}, {first.repeat}"
        return f"Error: {len(errors)} of {total} cells failed; the first, {where}: {text}."
    return f"Error: {results.metadata.n_missing or total} of {total} cells have no outcome."
