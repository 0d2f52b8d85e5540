"""The door: one function per command. The command line, pytest and notebooks call these and nothing else.

Each makes a request of its arguments and returns what the program found. `answer` takes any request.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from boosters_eval.core.errors import BoostersEvalWarning, ConfigError, FileFormatError, RunError, require, suggest
from boosters_eval.core.files import check_folder, check_home
from boosters_eval.core.request import COMMANDS, Request, load_request
from boosters_eval.core.terms import listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from typing import Literal, Unpack

    from boosters_eval.core.findings import Findings, Removal
    from boosters_eval.datasets.config import DatasetConfig, DataSettings
    from boosters_eval.engine.settings import RunOptions
    from boosters_eval.metrics import Metric
    from boosters_eval.metrics.task import Task
    from boosters_eval.programs.baseline.commands import PreparedCheck
    from boosters_eval.programs.baseline.findings import Check
    from boosters_eval.programs.baseline.model import Baseline
    from boosters_eval.programs.baseline.update import UpdatedBaseline
    from boosters_eval.programs.benchmark.benchmarks import Libraries
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.request import MeasuringOptions
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.suites import BenchmarkSuite
    from boosters_eval.programs.bisect.answer import Bisection
    from boosters_eval.programs.bisect.request import BisectionOptions
    from boosters_eval.programs.bisect.search import Bisector
    from boosters_eval.programs.catalog.builds import AddedBuilds, ListedBuilds, ShownBuild
    from boosters_eval.programs.catalog.datasets import DescribedDataset, FetchedDatasets, WrittenSettings
    from boosters_eval.programs.catalog.lists import Inventory
    from boosters_eval.programs.catalog.mappings import Mappings
    from boosters_eval.programs.determinism.findings import DeterminismFindings
    from boosters_eval.programs.export.findings import ExportFindings
    from boosters_eval.programs.gate.model import GateDecision
    from boosters_eval.programs.history.difference import RunDifference
    from boosters_eval.programs.history.index import Reindexed
    from boosters_eval.programs.history.model import HistoryListing, HistoryRun
    from boosters_eval.programs.history.report import HistoryReport
    from boosters_eval.programs.history.transfer import HistoryExport, HistoryImport
    from boosters_eval.programs.importances.results import Explanations
    from boosters_eval.programs.paper.comparison import PaperComparison, PaperResults
    from boosters_eval.programs.paper.extract import ExtractedPaper, Extraction
    from boosters_eval.programs.paper.judge import PaperReport
    from boosters_eval.programs.paper.own import WrittenTemplate
    from boosters_eval.programs.paper.request import Decimal, Parentheses, Role
    from boosters_eval.programs.paper.run import PreparedPaper
    from boosters_eval.programs.paper.targets import ListedTarget, ListedTargets
    from boosters_eval.programs.parity.catalog import ParityListing
    from boosters_eval.programs.parity.document import RenderedParity
    from boosters_eval.programs.parity.findings import ParityDecision, ParityReport
    from boosters_eval.programs.parity.references import StoredOracles, VerifiedOracles
    from boosters_eval.programs.parity.run import ParityRun, RefreshedOracles
    from boosters_eval.programs.parity.templates import WrittenRegistry
    from boosters_eval.programs.report.writing import DrawnFigures, RunPage, WrittenReport
    from boosters_eval.programs.runs.manage import RunDetails, RunListing, Verification
    from boosters_eval.programs.tune.findings import TuneFindings
    from boosters_eval.programs.upgrade.findings import UpgradeFindings
    from boosters_eval.programs.where.findings import FoundSlices
    from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig
    from boosters_eval.stats.significance import TestName
    from boosters_eval.tracking import Tracker

    BoosterName = BoosterType | Literal["gbdt", "gblinear", "linear_trees"]
    ProfileName = Profile | Literal["parity", "defaults"]
    Profiles = ProfileName | Literal["both"]
    TaskName = Task | Literal["regression", "binary", "multiclass", "quantile", "ranking"]
    Seeds = int | Literal["auto"]
    # A name, 'path:column', a pandas or polars data frame, arrays (X, y), or a dict that names frames and arrays.
    Data = str | DatasetConfig | Any
    MetricLike = str | Metric | Callable[..., Any]  # a function says which way is better: its `higher_is_better`
    MarginLike = str | float | Mapping[str, str | float]  # "1%" or 0.01 of the error, {"auc_roc": 0.002, "rmse": "2%"}
    Files = str | Path | Sequence[str | Path]
    Trackers = str | type[Tracker] | Sequence[str | type[Tracker]] | None

P = ParamSpec("P")


def answer(request: Request) -> Findings:
    """What the program of a request finds. Nothing is printed, unless somebody listens."""
    require("request", request, Request, "the request of a program")
    program = type(request).program
    if isinstance(program, str):
        module, _, function = program.partition(":")
        program = getattr(import_module(module), function)
    from boosters_eval.core.reader import reading_within  # noqa: PLC0415 (not for whoever asks for help)

    with reading_within(getattr(request, "read_limit", None)):
        found: Findings | None = program(request)
    if found is None:  # of another package
        raise RunError(f"The program of '{type(request).command}' must return its findings. Got None instead.")
    return found


def compare(
    datasets: Data | Sequence[Data] = ("california",),
    libraries: Libraries = None,
    booster: BoosterName | Sequence[BoosterName] = ("gbdt",),
    seeds: Seeds | None = None,
    *,
    training: TrainingConfig | None = None,
    variants: Mapping[str, TrainingConfig | Mapping[str, Any]] | None = None,
    metrics: MetricLike | Sequence[MetricLike] = (),
    cv: str | int | None = None,
    task: TaskName | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | Sequence[str] | None = None,
    split: str | None = None,
    splits: Literal["balanced", "random"] = "balanced",
    profile: Profiles = "parity",
    max_seeds: int | None = None,
    budget: str | float | None = None,
    reuse: bool = False,
    margin: MarginLike | Sequence[str] = (),
    **settings: Unpack[MeasuringOptions],
) -> ResultCollection:
    """Compare libraries on data sets. `data` says how the columns of files are read and used.

    `split` is random, time:COLUMN (validate on later rows than learned from, in windows; `cv` is their number; time
    alone follows the order of the rows) or group:COLUMN (no group on both sides). With balanced `splits`, no row is
    tested twice before all were tested. With seeds="auto", seeds are added until every pair has a verdict, or
    `max_seeds` or the budget is used up. What differs by less than the `margin` is equivalent: "1%" of the error, or
    per metric, {"auc_roc": 0.002}. The libraries stay loaded for the next call, for some minutes. An executor given
    by name is created for this run and closed after it; one that you created yourself stays open. `track` names
    trackers that the run is sent to, such as "mlflow"; one that fails or hangs is a BoostersEvalWarning. A run in
    which every cell failed is a RunError; if some failed, a BoostersEvalWarning counts them.
    """
    request = _request("compare", locals())
    with _heard(request):
        return _checked(_run(_warned(_call("benchmark.compare:prepare_comparison", request))))


def run_suite(
    suite: str | BenchmarkSuite = "quick",
    seeds: Seeds | None = None,
    libraries: Libraries = None,
    *,
    metrics: MetricLike | Sequence[MetricLike] = (),
    cv: str | int | None = None,
    splits: Literal["balanced", "random"] | None = None,
    profile: Profiles | None = None,
    margin: MarginLike | Sequence[str] = (),
    policy: str | Path | None = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    subset: int | None = None,
    skip_missing: bool = False,
    **settings: Unpack[MeasuringOptions],
) -> ResultCollection:
    """Run a suite by name, by `path.py:NAME`, or as an object; `seeds` and `cv` come before what it says itself."""
    request = _request("run_suite", locals())
    with _heard(request):
        return _checked(_run(_warned(_call("benchmark.compare:prepare_suite", request))))


def rescore(
    run: str = "last",
    metrics: MetricLike | Sequence[MetricLike] = (),
    *,
    margin: MarginLike | Sequence[str] = (),
    home: str | Path | None = None,
) -> ResultCollection:
    """A run judged by other metrics, from the predictions that it has kept; the first of them decides.

    Verdicts share the run's risk with what it was judged by before, so each is a little stricter.
    """
    return cast("ResultCollection", _call("benchmark.rescore:rescore_run", _request("rescore", locals())))


def find_slices(
    run: str = "last",
    libraries: str | Sequence[str] | None = None,
    *,
    dataset: str | None = None,
    metric: MetricLike | None = None,
    home: str | Path | None = None,
) -> FoundSlices:
    """The parts of a run's data on which the first library loses to the second, from the predictions that it has kept.

    They are found on one half of the rows and tested on the other. `.slices` and `.worst` hold them and the worst rows.
    """
    return cast("FoundSlices", _answer("find_slices", locals()))


def check_upgrade(
    library: str,
    old: str,
    new: str,
    *,
    suite: str | BenchmarkSuite | None = None,
    datasets: Data | Sequence[Data] = (),
    params: str | Path | Mapping[str, Any] | None = None,
    tolerance: float = 1e-6,
    seeds: int = 3,
    models: str | Path | None = None,
    rows: str | None = None,
    isolated: bool = False,
    task: TaskName | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | Sequence[str] | None = None,
    **settings: Unpack[RunOptions],
) -> UpgradeFindings:
    """Whether a newer version of a library may be used, cell by cell of a matrix of what people do with it.

    Either side is a version, a wheel, a source folder, or "installed". `.answer` is "safe", "safe but", "changes" or
    "unanswered", `.pin` what to write, and `.cells` what became of each cell.
    """
    return cast("UpgradeFindings", _answer("check_upgrade", locals()))


def check_export(
    model: str | Path,
    rows: str | Path,
    *,
    exports: str | Sequence[str] = (),
    runtimes: str | Sequence[str] = (),
    tolerance: float | None = None,
    **settings: Unpack[RunOptions],
) -> ExportFindings:
    """Whether a saved model predicts the same in its other formats and runtimes: `.exports` has an answer for each.

    It is asked about the rows of a CSV file, rows on its thresholds and beside them, and missing, infinite and unseen
    values. `.failing` are the exports that decide otherwise, or whose values are too far off.
    """
    return cast("ExportFindings", _answer("check_export", locals()))


def determinism(
    libraries: Libraries = None,
    *,
    datasets: Data | Sequence[Data] = (),
    task: TaskName | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | Sequence[str] | None = None,
    **settings: Unpack[RunOptions],
) -> DeterminismFindings:
    """What makes the same training give another model: `.probes` has an answer per library, task and question."""
    return cast("DeterminismFindings", _answer("determinism", locals()))


def tune(
    datasets: Data | Sequence[Data] = ("diabetes",),
    libraries: Libraries = None,
    trials: int = 15,
    *,
    space: Literal["common", "own"] = "common",
    sampler: Literal["random", "sobol"] = "random",
    inner: int = 1,
    early_stopping: int | None = None,
    metric: MetricLike | None = None,
    seeds: int | None = None,
    cv: str | int | None = None,
    splits: Literal["balanced", "random"] = "balanced",
    split: str | None = None,
    budget: str | float | None = None,
    cpu_budget: float | None = None,
    reuse: bool = False,
    margin: MarginLike | Sequence[str] = (),
    training: TrainingConfig | None = None,
    task: TaskName | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | Sequence[str] | None = None,
    **settings: Unpack[MeasuringOptions],
) -> TuneFindings:
    """What tuning is worth to each library at the same budget, and which one is best after it.

    All libraries try the same configurations, which are chosen by a part of the training rows and scored on the test
    rows. `.tasks` has an answer per data set, with what the best of k trials is expected to score in `curve`. What is
    set in `training` is not searched.
    """
    return cast("TuneFindings", _answer("tune", locals()))


def importances(
    datasets: Data | Sequence[Data] = ("california",),
    libraries: Libraries = None,
    booster: BoosterName | Sequence[BoosterName] = ("gbdt",),
    seeds: int | None = None,
    *,
    kinds: str | Sequence[str] = ("permutation", "gain", "split", "shap"),
    permutations: int = 5,
    max_rows: int = 10_000,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    training: TrainingConfig | None = None,
    cv: str | int | None = None,
    task: TaskName | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    target: str | Sequence[str] | None = None,
    split: str | None = None,
    splits: Literal["balanced", "random"] = "balanced",
    profile: ProfileName = "parity",
    **settings: Unpack[MeasuringOptions],
) -> Explanations:
    """What the model of each library relies on, and each library with itself over seeds.

    Every cell trains the model that `compare` scores, once, and measures all `kinds` on at most `max_rows` of its
    validation rows. Each column is shuffled `permutations` times; those of one of the `groups` are shuffled and ranked
    together. All other parameters are those of `compare`. A run in which every cell failed is a RunError; if some
    failed, a BoostersEvalWarning counts them.
    """
    request = _request("importances", locals())
    with _heard(request):
        found = _explain(_warned(_call("importances.plan:prepare_importances", request)))
    _checked(found.collection)
    return found


def _preparing(name: str, door: Callable[P, Any], module: str) -> Callable[P, PreparedRun]:
    """The function that only prepares what another one runs, with the same parameters."""
    signature = inspect.signature(door)

    def call(*given: P.args, **named: P.kwargs) -> PreparedRun:
        bound = signature.bind(*given, **named)
        return cast("PreparedRun", _call(f"{module}:{name}", _request(door.__name__, dict(bound.arguments), name)))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The plan of `{door.__name__}`: every mistake is told, but nothing has run."
    call.__annotations__ = {**door.__annotations__, "return": "PreparedRun"}
    call.__signature__ = signature.replace(return_annotation="PreparedRun")  # type: ignore[attr-defined]
    return call


prepare_comparison = _preparing("prepare_comparison", compare, "benchmark.compare")
prepare_suite = _preparing("prepare_suite", run_suite, "benchmark.compare")
prepare_importances = _preparing("prepare_importances", importances, "importances.plan")


def run_prepared(prepared: PreparedRun, **settings: Unpack[RunOptions]) -> ResultCollection:
    """Carry out what `prepare_comparison` or `prepare_suite` gives; failed cells are in `errors`, even if all did."""
    made_by = "prepare_comparison() or prepare_suite()"
    return _run(_with_settings("run_prepared", prepared, "fit", made_by, settings))


def run_importances(prepared: PreparedRun, **settings: Unpack[RunOptions]) -> Explanations:
    """Carry out what `prepare_importances` gives; failed cells are in `errors`, even if all failed."""
    return _explain(_with_settings("run_importances", prepared, "importances", "prepare_importances()", settings))


def record_baseline(
    file: str | Path | None = None,
    *,
    suite: str | BenchmarkSuite | None = None,
    libraries: Libraries = None,
    seeds: int | None = None,
    run: str | None = None,
    results: str | Path | ResultCollection | None = None,
    allow_flaky: int = 0,
    continue_on_error: bool = False,
    **settings: Unpack[MeasuringOptions],
) -> Baseline:
    """Record the results of a suite, by default of `full`, or of an earlier `run` or `results`, in a file.

    The default file is tests/baselines/baseline.json, or baseline.json in BOOSTERS_EVAL_BASELINE_DIR. A run with errors
    is a RunError, and so is one with more than `allow_flaky` cells that finished only after failing; with
    `continue_on_error`, the pairs without a failed cell are recorded, and `absent` of the baseline names the others.
    """
    found: Baseline = _answer("record_baseline", locals()).baseline
    return found


def check_baseline(
    baseline: str | Path | Baseline | None = None,
    *,
    suite: str | BenchmarkSuite | None = None,
    libraries: Libraries = None,
    seeds: Seeds | None = None,
    max_seeds: int | None = None,
    run: str | None = None,
    results: str | Path | ResultCollection | None = None,
    tolerance: float = 0.02,
    tolerance_for: Mapping[str, float] | None = None,
    statistical: bool = False,
    libraries_under_test: Sequence[str] = (),
    allow_flaky: int = 0,
    fresh: bool = False,
    **settings: Unpack[MeasuringOptions],
) -> Check:
    """Run a baseline's suite again, with its seeds and libraries unless others are named, and compare.

    With an earlier `run`, or `results`, nothing runs. `tolerance` is how much worse a primary metric may be, and
    `tolerance_for` that of single metrics or configs. With `statistical`, each change is tested, and seeds="auto" runs
    as many of the recorded seeds as it takes to decide. Finished cells of earlier runs with the same build, data and
    split are taken over, unless `fresh`. `passed` and `exit_code` of the check are its verdict,
    `findings` has one per pair, and printing it tells it in words.
    """
    found: Check = _answer("check_baseline", locals()).check
    return found


def update_baseline(
    file: str | Path | None = None,
    *,
    suite: str | BenchmarkSuite | None = None,
    libraries: Libraries = None,
    datasets: Sequence[str] = (),
    run: str | None = None,
    results: str | Path | ResultCollection | None = None,
    accept: str = "",
    allow_flaky: int = 0,
    **settings: Unpack[MeasuringOptions],
) -> UpdatedBaseline:
    """Merge a run into a baseline, by library or data set; other pairs stay as they are.

    What gets worse or disappears needs a reason (`accept`), which the file keeps: without one nothing is written, and
    `refused` says so. `changes` are what became of each pair.
    """
    return cast("UpdatedBaseline", _answer("update_baseline", locals()))


def diff_baselines(
    before: str | Path | Baseline,
    after: str | Path | Baseline,
    *,
    tolerance: float = 0.02,
    tolerance_for: Mapping[str, float] | None = None,
    statistical: bool = False,
    libraries_under_test: Sequence[str] = (),
    allow_flaky: int = 0,
) -> Check:
    """Compare two baselines without running anything, by the rules of `check_baseline`."""
    found: Check = _answer("diff_baselines", locals()).check
    return found


def prepare_check(
    baseline: str | Path | Baseline | None = None,
    *,
    suite: str | BenchmarkSuite | None = None,
    libraries: Libraries = None,
    seeds: Seeds | None = None,
    max_seeds: int | None = None,
    tolerance: float = 0.02,
    tolerance_for: Mapping[str, float] | None = None,
    statistical: bool = False,
    libraries_under_test: Sequence[str] = (),
    allow_flaky: int = 0,
    fresh: bool = False,
    **settings: Unpack[MeasuringOptions],
) -> PreparedCheck:
    """The plan of a check, before anything has run: `pairs` are what it will judge.

    All libraries of the suite run, recorded or not; without a baseline, the check finds only failures.
    """
    return cast(
        "PreparedCheck", _call("baseline.commands:prepare_check", _request("check_baseline", locals(), "prepare_check"))
    )


def run_check(prepared: PreparedCheck) -> Check:
    """Carry out what `prepare_check` gives."""
    from boosters_eval.programs.baseline.commands import PreparedCheck  # noqa: PLC0415 (keeps start-up fast)

    require("prepared", prepared, PreparedCheck, "what prepare_check() gives")
    return prepared.judge(_run(prepared.run))


def decide_gate(
    run: str | None = None,
    baseline: str | Path | None = None,
    *,
    threshold: float | None = None,
    scores: str | Path | None = None,
    library: str = "boosters",
    tier: Literal["bronze", "silver", "gold"] | None = None,
    min_cases: int | None = None,
    held_out: str | Sequence[str] = (),
    no_held_out: bool = False,
    allow_changed_parameters: bool = False,
    allow_low_coverage: bool = False,
    allow_flaky: int = 0,
    home: str | Path | None = None,
) -> GateDecision:
    """Decide whether a version may be released: by a `run` against a `baseline`, or by a file of `scores`.

    `promoted` of the decision is the answer, and `objections` are the reasons against it. Nothing is written: `text()`
    is what the file of a decision holds, which `verify_decision` computes again.
    """
    return cast("GateDecision", _call("gate.decision:decide", _request("decide_gate", locals())))


def verify_decision(
    reference: str | Path,
    *,
    baseline: str | Path | None = None,
    scores: str | Path | None = None,
    home: str | Path | None = None,
) -> Verification:
    """Compute a gate decision again from its file and the run that it is about; `is_good` if the bytes are the same.

    What it quotes is compared with the `baseline` or the `scores`, or with the file that it names itself.
    """
    return cast("Verification", _call("runs.manage:verify_decision", _request("verify_decision", locals())))


def bisect(library: str, **options: Unpack[BisectionOptions]) -> Bisection:
    """The version of a library with which a number changed, by as few runs as the noise allows.

    The versions are the releases `versions="4.3..4.7"` (or a list of them), `wheels` in order, or the `commits`
    "GOOD..BAD" of a `folder`, each built by pip or by `build_command`. The number is the `metric` (a time or `memory`
    too) on the `dataset`, and `tolerance` is the smallest relative change that counts. Each step adds seeds, up to
    `max_seeds`, until it is decided; a wrong version is named with a chance of at most `alpha`. `on_step` is called
    after each step. A version that cannot be installed or trained is passed over. All other options are those of
    `compare`.
    """
    return cast("Bisection", _answer("bisect", {"library": library, **options}))


def prepare_bisection(library: str, **options: Unpack[BisectionOptions]) -> Bisector:
    """A bisection that is ready to `run()`: the versions, the data and the metric are known, nothing is installed."""
    request = _request("bisect", {"library": library, **options}, "prepare_bisection")
    return cast("Bisector", _call("bisect.search:prepare_bisection", request))


def run_parity(
    methods: str | Sequence[str] = (),
    backends: str | Sequence[str] = (),
    *,
    sizes: str | Sequence[str | tuple[int, int]] = (),
    registry_cells: bool = False,
    full_matrix: bool = False,
    threads: int | Sequence[int] = (),
    max_runs: int = 40,
    rounds: int | None = None,
    compare_all: bool = False,
    max_cells: int | None = None,
    budget: float | None = None,
    out_csv: str | Path | None = None,
    publish: str | Path | None = None,
    oracles: str | Path | None = None,
    registry: Files = (),
    **settings: Unpack[RunOptions],
) -> ParityRun:
    """A row for each method, backend, size and number of threads: how it ended, how it agrees, and its times.

    By default all methods run on all their backends, with their own `sizes` such as "1000x50", or only the first of
    these if `registry_cells` is set; `full_matrix` runs everything, with 1, 3, and 10 `threads`. A cell is repeated at
    most `max_runs` times, and not after `budget` seconds; in further `rounds`, the backends take turns. The predictions
    for three data sets are compared, or with `compare_all` those for every one. With `max_cells`, only so many cells
    run now. The rows go to the file `out_csv` too, whose other rows stay; with `resume`, those that it has are kept,
    and with `rerun_failed`, those that did not fail. The folder `publish` gets static pages. `registry` names Python
    files that define further methods, backends and generators, `oracles` the folder of stored references.
    """
    return cast("ParityRun", _answer("run_parity", locals()))


def decide_parity_gate(
    csv: Files,
    *,
    strict_external: bool = False,
    own: str | Sequence[str] = (),
    allow_absent: bool = False,
    registry: Files = (),
) -> ParityDecision:
    """Whether a project's own bindings agree with each other and with their oracles, by the files of parity runs.

    `own` names those backends, instead of the declared ones; with `strict_external` all others count too. A binding
    without a result is no pass, nor is one that is not installed unless `allow_absent` is set, nor one without a row
    that the files of `registry` declare.
    """
    return cast("ParityDecision", _answer("decide_parity_gate", locals()))


def render_parity(csv: Files, out: str | Path, *, registry: Files = ()) -> ParityReport:
    """The report of the files of parity runs, written to `out`: as .md, .html (a dashboard) or .json."""
    found: RenderedParity = _answer("render_parity", locals())
    return found.report


def list_parity(registry: Files = ()) -> ParityListing:
    """The methods and backends of parity runs, and which of them can be used here."""
    return cast("ParityListing", _answer("list_parity", locals()))


def init_parity(
    folder: str | Path,
    *,
    language: Literal["python", "command", "r", "octave", "c"] = "python",
    force: bool = False,
) -> WrittenRegistry:
    """Write a registry to `folder`, with a backend in a language, which is to be replaced by your own."""
    return cast("WrittenRegistry", _answer("init_parity", locals()))


def list_oracles(oracles: str | Path | None = None, home: str | Path | None = None) -> StoredOracles:
    """The stored references of parity runs, of a folder or in the home of the runs."""
    return cast("StoredOracles", _answer("list_oracles", locals()))


def verify_oracles(oracles: str | Path | None = None, home: str | Path | None = None) -> VerifiedOracles:
    """What is wrong with each stored reference, by its digest."""
    return cast("VerifiedOracles", _answer("verify_oracles", locals()))


def refresh_oracles(
    methods: str | Sequence[str] = (),
    *,
    oracles: str | Path | None = None,
    registry: Files = (),
    **settings: Unpack[RunOptions],
) -> RefreshedOracles:
    """Run the oracle and the canonical binding of each method on its sizes, and store what they predict."""
    return cast("RefreshedOracles", _answer("refresh_oracles", locals()))


def explain_mapping(
    libraries: Libraries = None,
    *,
    every: bool = False,
    booster: BoosterName | Sequence[BoosterName] = ("gbdt",),
    task: TaskName = "regression",
    training: TrainingConfig | None = None,
    profile: ProfileName = "parity",
    classes: int = 3,
    targets: int = 1,
    quantiles: Sequence[float] = (0.5,),
    threads: int = 1,
    weighted: bool = False,
    missing: bool = False,
    categorical: Sequence[int] = (),
) -> Mappings:
    """What each library is given for the canonical parameters, and how exactly each of them is matched."""
    return cast("Mappings", _answer("explain_mapping", locals()))


def fetch_datasets(names: str | Sequence[str] = (), *, suite: str | None = None) -> FetchedDatasets:
    """Download data sets, or those of a suite, through pip; they are verified and kept in the cache."""
    return cast("FetchedDatasets", _answer("fetch_datasets", locals()))


def show_dataset(
    name: str,
    *,
    task: TaskName | None = None,
    split: str | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
) -> DescribedDataset:
    """Describe a data set, with its audit and the distribution of its target."""
    return cast("DescribedDataset", _answer("show_dataset", locals()))


def init_dataset(
    file: str,
    *,
    task: TaskName | None = None,
    split: str | None = None,
    data: DataSettings | Mapping[str, Any] | None = None,
    force: bool = False,
) -> WrittenSettings:
    """Write FILE.yaml with what was found in the data file of FILE:TARGET, so that it is always read so."""
    return cast("WrittenSettings", _answer("init_dataset", locals()))


def add_builds(
    references: str | Sequence[str], *, isolated: bool = False, home: str | Path | None = None
) -> AddedBuilds:
    """Install builds such as 'xgboost==3.0.5', so that a later run need not."""
    return cast("AddedBuilds", _answer("add_builds", locals()))


def list_builds(home: str | Path | None = None) -> ListedBuilds:
    """The builds in this home, the latest used first."""
    return cast("ListedBuilds", _answer("list_builds", locals()))


def show_build(reference: str, home: str | Path | None = None) -> ShownBuild:
    """What is known of a build, and whether its files are as they were installed."""
    return cast("ShownBuild", _answer("show_build", locals()))


def remove_builds(references: str | Sequence[str], *, dry_run: bool = False, home: str | Path | None = None) -> Removal:
    """Remove builds, without asking. Runs and reports that used them stay."""
    found: Removal = _answer("remove_builds", locals())
    return found if dry_run else found.remove_things()


def prune_builds(
    older_than: str | timedelta = timedelta(days=30), *, dry_run: bool = False, home: str | Path | None = None
) -> Removal:
    """Remove the builds that were not used for a while, without asking; what is damaged or unfinished goes too."""
    found: Removal = _answer("prune_builds", locals())
    return found if dry_run else found.remove_things()


def extract_paper(
    document: str | Path,
    *,
    tables: str | Sequence[str] = (),
    out: str | Path | None = None,
    force: bool = False,
    columns: Role | None = None,
    parentheses: Parentheses | None = None,
    decimal: Decimal = "point",
    metric: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
) -> ExtractedPaper:
    """The tables of results of a paper as Markdown, HTML or LaTeX; what could not be read is in their `unread`.

    `out` is the file for a specification to be completed. A document without any result is a FileFormatError.
    """
    found: Extraction = _answer("extract_paper", locals())
    if found.fault:
        raise FileFormatError(found.fault)
    return found.paper


def list_paper_targets(
    files: str | Path | Sequence[str | Path] = (), *, model: str | Path | None = None, allow_pickle: bool = False
) -> tuple[ListedTarget, ...]:
    """The targets of specifications, by default of those in examples/papers and here: what can run, and why not."""
    found: ListedTargets = _answer("list_paper_targets", locals())
    return found.targets


def run_paper(
    spec: str | Path,
    *,
    model: str | Path | None = None,
    only: str | Sequence[str] = (),
    seeds: int | None = None,
    threads: int | None = None,
    allow_pickle: bool = False,
    predictions: bool = True,
    **settings: Unpack[RunOptions],
) -> PaperResults:
    """Run the reproduction targets of a specification; one that failed or cannot run here is told as such.

    Functions and programs that the specification names are executed: run only what you trust.
    """
    request = _request("run_paper", locals())
    with _heard(request):
        return cast("PaperResults", _call("paper.run:prepare", request).run())


def compare_paper(results: str | Path | PaperResults, paper: str | Path) -> PaperComparison:
    """Results beside the paper's: as `run_paper` gives or 'paper run' writes them, or of one's own as CSV or JSON."""
    found: PaperReport = _answer("compare_paper", locals())
    return found.comparison


def init_paper_results(
    spec: str | Path,
    *,
    out: str | Path = Path("results.csv"),
    wide: bool = False,
    seeds: int | None = None,
    force: bool = False,
) -> WrittenTemplate:
    """Write a CSV file to be filled in with one's own results for what a specification targets."""
    return cast("WrittenTemplate", _answer("init_paper_results", locals()))


def report_paper(comparison: str | Path | PaperComparison, *, format: str | None = None) -> str:  # noqa: A002 (the option)
    """The report of a comparison as text: markdown, the default, html, json or yaml."""
    found: PaperReport = _answer("report_paper", locals())
    return found.render(format or "markdown")


def validate_paper(
    spec: str | Path,
    *,
    model: str | Path | None = None,
    only: str | Sequence[str] = (),
    seeds: int | None = None,
    threads: int | None = None,
    allow_pickle: bool = False,
    predictions: bool = True,
    **settings: Unpack[RunOptions],
) -> PaperComparison:
    """What `run_paper` measures, compared with the paper. `report_paper` makes a report of it; nothing is written."""
    request = _request("validate_paper", locals())
    with _heard(request):
        prepared: PreparedPaper = _call("paper.run:prepare", request)
        return prepared.compare(prepared.run())


def load_run(reference: str = "last", home: str | Path | None = None, *, verified: bool = False) -> ResultCollection:
    """A run by its id, the beginning of its id, its name, or `last`; a changed one is refused.

    Of several attempts it is the latest finished one; `verified` refuses a run whose latest attempt is unfinished.
    """
    found = _call("benchmark.runs:load_run", _reference(reference), check_home(home), verified=verified)
    return cast("ResultCollection", found)


def load_results(path: str | Path) -> ResultCollection:
    """A results file, as `ResultCollection.to_json` and `--format json` write it."""
    from boosters_eval.programs.benchmark.results import ResultCollection  # noqa: PLC0415 (keeps start-up fast)

    return ResultCollection.load_partial(path)


def load_importances(reference: str = "last", home: str | Path | None = None) -> Explanations:
    """The explanations of a run by its id, the beginning of its id, its name, or `last`; a changed one is refused."""
    found = _call("importances.results:load_explanations", _reference(reference), check_home(home))
    return cast("Explanations", found)


def verify_run(reference: str = "last", home: str | Path | None = None) -> Iterator[tuple[str, str]]:
    """For each file of a run that is checked, its name and what is wrong with it; '' if nothing is.

    The reference may also be the path of a run's folder, wherever it is.
    """
    yield from _call("runs.manage:verify_files", _reference(reference), check_home(home))


def list_runs(limit: int | None = None, *, home: str | Path | None = None) -> RunListing:
    """The runs in a home, the latest first; unreadable ones too."""
    return cast("RunListing", _answer("list_runs", locals()))


def show_run(reference: str, *, home: str | Path | None = None) -> RunDetails:
    """What is known of a run: its facts, its attempts, and the commands that go on from it."""
    return cast("RunDetails", _answer("show_run", locals()))


def open_run(reference: str = "last", *, browser: bool = True, home: str | Path | None = None) -> RunPage:
    """Write the HTML report of a run into its folder, and open it, where there is a display."""
    return cast("RunPage", _answer("open_run", locals()))


def remove_runs(
    references: str | Sequence[str] = (),
    *,
    older_than: str | timedelta | None = None,
    dry_run: bool = False,
    home: str | Path | None = None,
) -> Removal:
    """Remove runs, with all their attempts, without asking. `dry_run` removes nothing, but returns the same runs."""
    chosen = cast("Removal", _answer("remove_runs", locals()))
    return chosen if dry_run else chosen.remove_things()


def prune_runs(
    references: str | Sequence[str] = (),
    *,
    predictions: bool = False,
    older_than: str | timedelta | None = None,
    dry_run: bool = False,
    home: str | Path | None = None,
) -> Removal:
    """Remove what runs can do without, by default from all of them: `predictions`. Their results stay."""
    chosen = cast("Removal", _answer("prune_runs", locals()))
    return chosen if dry_run else chosen.remove_things()


def list_history(
    suite: str | None = None,
    datasets: str | Sequence[str] = (),
    libraries: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    *,
    machine: str | None = None,
    since: str | datetime | None = None,
    limit: int | None = 30,
    home: str | Path | None = None,
) -> HistoryListing:
    """The runs of a home, the latest first, each with its verdict against the run before on the same machine.

    `machine` is the start of its digest, or its CPU; `since` is a date, or a time such as 12h, 30d or 8w.
    """
    return cast("HistoryListing", _answer("list_history", locals()))


def show_history(reference: str, *, home: str | Path | None = None) -> HistoryRun:
    """What a run measured, and every number against the run before on the same machine."""
    return cast("HistoryRun", _answer("show_history", locals()))


def diff_runs(
    before: str, after: str, *, metrics: str | Sequence[str] = (), home: str | Path | None = None
) -> RunDifference:
    """Two runs number by number: paired over the splits that both have, and saying so where not."""
    return cast("RunDifference", _answer("diff_runs", locals()))


def report_history(
    suite: str | None = None,
    datasets: str | Sequence[str] = (),
    libraries: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    *,
    machine: str | None = None,
    since: str | datetime | None = None,
    limit: int | None = None,
    home: str | Path | None = None,
) -> HistoryReport:
    """Every benchmark, competitor and metric over all runs, with the steps where a number changed its level.

    Which runs are meant is said as in `list_history`.
    """
    return cast("HistoryReport", _answer("report_history", locals()))


def import_history(files: str | Path | Sequence[str | Path], *, home: str | Path | None = None) -> HistoryImport:
    """Add results of other machines to the history. A file without results is told in what is returned."""
    return cast("HistoryImport", _answer("import_history", locals()))


def export_history(
    output: str | Path | None = None,
    format: Literal["json", "csv"] | None = None,  # noqa: A002 (as the command line has it)
    *,
    suite: str | None = None,
    datasets: str | Sequence[str] = (),
    libraries: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    machine: str | None = None,
    since: str | datetime | None = None,
    limit: int | None = None,
    home: str | Path | None = None,
) -> HistoryExport:
    """Write the benchmark runs of the history to a file; without one, `pour` of what is returned writes them.

    JSON has whole runs, which can be imported elsewhere; CSV has one line per number.
    """
    return cast("HistoryExport", _answer("export_history", locals()))


def reindex_history(*, home: str | Path | None = None) -> Reindexed:
    """Read all runs and imported files anew."""
    return cast("Reindexed", _answer("reindex_history", locals()))


def write_report(
    suite: str | BenchmarkSuite | None = None,
    run: str | None = None,
    results: str | Path | None = None,
    *,
    report_type: Literal["quality", "performance", "comparison"] = "quality",
    output: str | Path = Path("docs/benchmarks"),
    format: str | Sequence[str] = (),  # noqa: A002 (as the command line has it)
    test: TestName = "rows",
    margin: MarginLike | Sequence[str] = (),
    seeds: int | None = None,
    libraries: Libraries = None,
    **settings: Unpack[MeasuringOptions],
) -> WrittenReport:
    """Write a report on a suite, which is run, on an earlier run or on a results file.

    `output` is a folder, or one file; `format` is one or more of "md", "json" and "html", by default as the file ends,
    else all. The settings are those of `run_suite`.
    """
    request = _request("write_report", locals())
    with _heard(request):
        found = cast("WrittenReport", answer(request))
    if suite is not None:
        _checked(found.results)
    return found


def list_libraries() -> Inventory:
    """The libraries: version, boosters and tasks, or why unavailable."""
    return cast("Inventory", _answer("list_libraries", {}))


def list_datasets(*, every: bool = False) -> Inventory:
    """The data sets: task, size, classes, source and availability; `every` has the generated problems too."""
    return cast("Inventory", _answer("list_datasets", locals()))


def list_suites(*, home: str | Path | None = None) -> Inventory:
    """The suites: what each would run, and the time that the history of this machine expects."""
    return cast("Inventory", _answer("list_suites", locals()))


def list_metrics() -> Inventory:
    """The metrics: their tasks, and which direction is better."""
    return cast("Inventory", _answer("list_metrics", {}))


def draw_figures(
    run: str = "last",
    output: str | Path = Path("figures"),
    *,
    format: str | Sequence[str] = ("svg", "pdf"),  # noqa: A002 (as the command line has it)
    home: str | Path | None = None,
) -> DrawnFigures:
    """Draw every chart of a run's page, one file each in the folder `output`."""
    return cast("DrawnFigures", _answer("draw_figures", locals()))


def track_run(
    reference: str = "last",
    to: Trackers = "mlflow",
    home: str | Path | None = None,
    *,
    timeout: float = 600.0,
    say: Callable[[str], None] | None = None,
) -> None:
    """Send an earlier run to trackers. What they have already is not sent again; `timeout` is in seconds."""
    _answer("track_run", locals())


# The command behind each function.
DOORS = {door: command for command, (_, _, door) in COMMANDS.items() if door}


def _request(door: str, given: dict[str, Any], called: str = "") -> Any:
    """The request that the arguments of a function make; it may be called by another name."""
    check_folder()
    settings = given.pop("settings", {})
    return load_request(DOORS[door]).of(called or door, {**given, **settings})


def _answer(door: str, given: dict[str, Any]) -> Any:
    """The findings of the request that the arguments of a function make."""
    request = _request(door, given)
    with _heard(request):
        return answer(request)


def _call(program: str, *given: Any, **named: Any) -> Any:
    """What a function of a program gives, which is imported only now: that keeps start-up fast."""
    module, _, function = program.partition(":")
    return getattr(import_module(f"boosters_eval.programs.{module}"), function)(*given, **named)


def _warned(prepared: PreparedRun) -> PreparedRun:
    """A warning for each finding about the data with which scores are too good; the others are in `results.audits`."""
    for name, audit in prepared.audits.items():
        for finding in audit.severe:
            warnings.warn(f"{name}: {finding.text}; see results.audits", BoostersEvalWarning, stacklevel=3)
    return prepared


def _run(prepared: PreparedRun) -> ResultCollection:
    return cast("ResultCollection", _call("benchmark.runs:execute_prepared", prepared))


def _explain(prepared: PreparedRun) -> Explanations:
    return cast("Explanations", _call("importances.results:run_explained", prepared))


def _with_settings(door: str, prepared: PreparedRun, workload: str, made_by: str, settings: RunOptions) -> PreparedRun:
    """What is prepared, carried out in another way; what was planned can no longer be changed."""
    from boosters_eval.engine.settings import RunSettings  # noqa: PLC0415 (keeps start-up fast)
    from boosters_eval.programs.benchmark.planning import PreparedRun  # noqa: PLC0415

    require("prepared", prepared, PreparedRun, f"what {made_by} gives")
    if any(spec.workload != workload for spec in prepared.plan.specs):
        raise ConfigError(f"The 'prepared' parameter must be what {made_by} gives. Got another plan instead.")
    known = [name for name, each in RunSettings.parameters.items() if each.door != "options"]
    for name in settings.keys() - set(known):
        raise ConfigError(f"{door}() has no parameter '{name}'.{suggest(name, known)}")
    return replace(prepared, settings=prepared.settings.replace(**settings)) if settings else prepared


def _heard(request: Request) -> AbstractContextManager[None]:
    """Let a verbose call tell what it does, as the command line does."""
    verbose = getattr(request, "verbose", False)
    return listen(lambda text: print(text, file=sys.stderr)) if verbose else nullcontext()  # noqa: T201


def _checked(results: ResultCollection) -> ResultCollection:
    """Refuse an answer that is empty because every cell failed, and warn about one that lacks some."""
    if not results.errors:
        return results
    first, failed, total = results.errors[0], len(results.errors), len(results.errors) + len(results.results)
    seed = first.seed if first.fold is None else f"{first.seed}, fold {first.fold}"
    why = " ".join(f"{first.error_type}: {first.error_message}".split()).rstrip(".")
    which = f"{first.library} on {first.config_name} (seed {seed}) failed in phase '{first.phase}' with {why}"
    if failed == total:
        every = "The only cell" if total == 1 else f"Each of the {total} cells"
        raise RunError(f"{every} of run {results.run_id} failed; load_run('{results.run_id}') has them. {which}.")
    text = f"{failed} of {total} cells failed, so some results are missing; see results.errors. The first: {which}."
    warnings.warn(text, BoostersEvalWarning, stacklevel=3)
    return results


def _reference(given: str) -> str:
    require("reference", given, str, "a run's id, the beginning of one, its name, or 'last'")
    return given
