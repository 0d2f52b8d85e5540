"""The explanations of a run: what each cell recorded, and its arrays, loaded when they are asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from boosters_eval.core.errors import ConfigError, ExitCode, RunError, UnknownNameError, require
from boosters_eval.core.files import find_home
from boosters_eval.core.text import add_article
from boosters_eval.engine.artifacts import load_array
from boosters_eval.engine.folder import Run, RunFolder
from boosters_eval.engine.runs import Competing, find_run
from boosters_eval.engine.session import PlannedRun, open_session
from boosters_eval.engine.summaries import find_kind
from boosters_eval.programs.benchmark.compare import announce, describe_run, explain_failure, is_success
from boosters_eval.programs.benchmark.runs import BenchmarkKind, collect_fits, run_once
from boosters_eval.programs.importances.plan import IMPORTANCES, prepare_importances
from boosters_eval.programs.importances.records import KINDS, Explanation, Kind
from boosters_eval.programs.importances.workload import ImportancesSpec
from boosters_eval.reports.findings import Reported, ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.core.findings import Findings, Screen
    from boosters_eval.datasets.config import DataAudit
    from boosters_eval.programs.benchmark.planning import PreparedRun
    from boosters_eval.programs.benchmark.records import BenchmarkError, RunMetadata, Unavailable, Unsupported
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.importances.document import ImportancesDocument
    from boosters_eval.programs.importances.request import ImportancesRequest
    from boosters_eval.reports.document import Document

ReportedFormat = Literal["markdown", "json", "csv", "html", "latex"]
FrameName = Literal["importances", "agreement", "checks", "correlated"]
_TOP = 10  # features of each kind that trackers are told of


@dataclass(frozen=True)
class Explanations(Reported):
    """The cells of one run that finished, those that failed, and what could not run. It never runs anything."""

    collection: ResultCollection  # the same cells as results of fits: scores, errors, and what is known of the run
    arrays: Path  # the folder of the run's arrays

    @cached_property
    def results(self) -> list[Explanation]:
        """The cells that finished, in the plan's order."""
        return [result for result in self.collection.results if isinstance(result, Explanation)]

    @property
    def errors(self) -> list[BenchmarkError]:
        """The cells that failed."""
        return self.collection.errors

    @property
    def unsupported(self) -> list[Unsupported]:
        """What a library cannot do."""
        return self.collection.unsupported

    @property
    def unavailable(self) -> list[Unavailable]:
        """Libraries that were asked for, but are not here."""
        return self.collection.unavailable

    @property
    def run_id(self) -> str | None:
        """The id of the run."""
        return self.collection.run_id

    @property
    def metadata(self) -> RunMetadata:
        """What is known of the run besides its cells."""
        return self.collection.metadata

    def document(self, top: int = 10) -> Document:
        """Everything that is told of the run, laid out, with at most `top` features in the tables."""
        return self.to_model(top).document()

    def to_model(self, top: int = 10) -> ImportancesDocument:
        """The same as data: `findings` are typed, one for each benchmark."""
        from boosters_eval.programs.importances.document import build_document  # noqa: PLC0415 (statistics, when asked for)

        require("top", top, int, "a whole number of features")
        if top < 1:
            raise ConfigError(f"The 'top' parameter must be at least 1. Got {top} instead.")
        return build_document(self, top)

    def report(self, format: ReportedFormat = "markdown", *, top: int = 10) -> str:  # noqa: A002 (as the command has it)
        """The report as markdown, json, csv, html or latex."""
        return self.to_model(top).render(format)

    def frame(self, about: FrameName = "importances") -> pd.DataFrame:
        """A table as a data frame: importances, agreement, checks, or correlated columns."""
        import pandas as pd  # noqa: PLC0415 (takes long to import)

        if about not in get_args(FrameName):
            raise UnknownNameError("frame", about, list(get_args(FrameName)))
        found = [(one.benchmark, item) for one in self.to_model().findings for item in getattr(one, about)]
        return pd.DataFrame.from_records([{"benchmark": name, **item.model_dump()} for name, item in found])

    @property
    def audits(self) -> dict[str, DataAudit]:
        """What was found in each data set before it was used, by name."""
        return self.collection.audits

    def array(self, digest: str) -> NDArray[Any]:
        """An array by its digest. One that is missing or was changed is a RunError."""
        return load_array(self.arrays, digest)

    def category_names(self, result: Explanation) -> dict[str, list[str]]:
        """The names of categories by column, in the order of their codes; empty where the data has none."""
        return {} if result.category_names is None else json.loads(self.array(result.category_names).tobytes())

    def measured(self, result: Explanation, kind: Kind) -> NDArray[np.float64] | None:
        """The array of a kind as the cell stored it (see `MeasuredKind`), or None where there is none."""
        found = result.kinds.get(kind)
        return None if found is None or found.array is None else self.array(found.array)

    def importances(self, result: Explanation, kind: Kind) -> NDArray[np.float64] | None:
        """One number for each unit: larger is more important. None where the library does not offer the kind.

        Permutation is the mean over the shuffles, gain and split are sums over the columns of a unit. SHAP is the mean
        over the rows of the absolute attribution to the unit, added up over the outputs.
        """
        values = self.measured(result, kind)
        if values is None:
            return None
        if kind == "permutation":
            return np.asarray(values.mean(axis=0))
        if kind == "shap":
            return np.asarray(np.abs(add_up_units(result, values[:, :-1])).mean(axis=0).sum(axis=-1))
        return add_up_units(result, values)

    def attributions(self, result: Explanation) -> NDArray[np.float64] | None:
        """The attributions by unit, (n, units, outputs), without the base value. None where there are none."""
        values = self.measured(result, "shap")
        return None if values is None else add_up_units(result, values[:, :-1])


def add_up_units(result: Explanation, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values by column, (p,) or (n, p, outputs), added up to values by unit."""
    axis = min(1, values.ndim - 1)
    if all(unit.columns == (i,) for i, unit in enumerate(result.units)):
        return values
    return np.stack([values.take(unit.columns, axis).sum(axis) for unit in result.units], axis)


def explain(request: ImportancesRequest) -> Findings:
    """What the model of each library relies on."""
    prepared = prepare_importances(request)
    announce(prepared)
    if request.dry_run:
        return PlannedRun.of(prepared.plan, request)
    return ImportancesFindings(run_explained(prepared), request)


def run_explained(prepared: PreparedRun) -> Explanations:
    with open_session(prepared.settings, prepared.plan) as session:
        run = run_once(session, prepared, kind=IMPORTANCES)
    return read_explanations(run, RunFolder(find_home(prepared.settings.home) / "runs" / run.plan.run_id).arrays)


@dataclass(frozen=True)
class ImportancesFindings(ReportedFindings):
    """The explanations, as the request wants them shown."""

    explanations: Explanations
    request: ImportancesRequest

    @property
    def exit_code(self) -> int:
        """A run with errors is no success unless the user accepts errors."""
        found = self.explanations.collection
        good = is_success(found, continue_on_error=self.request.continue_on_error)
        return ExitCode.SUCCESS if good else ExitCode.EXECUTION_ERROR

    def document(self) -> Document:
        return self.explanations.document(self.request.top)

    def to_model(self) -> ImportancesDocument:
        return self.explanations.to_model(self.request.top)

    def show(self, screen: Screen) -> None:
        """Tables on a terminal, which begin with the answer; Markdown elsewhere."""
        if not screen.is_terminal and self.request.format != "table":
            super().show(screen)
            return
        from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

        print_document(replace(self.document(), title=""), screen.console(), whole=screen.verbose)

    def conclude(self, screen: Screen) -> None:
        """The run, and why it is no success, even if quiet."""
        found = self.explanations
        if not screen.quiet and found.run_id:
            screen.note(describe_run(found.collection))
        if self.exit_code:
            screen.note(explain_failure(found.collection))


def load_explanations(reference: str, where: Path | None = None) -> Explanations:
    """A run by its id, the beginning of its id, its name, or `last`; a changed one is refused."""
    folder = find_run(reference, where, kind=IMPORTANCES)
    shown, latest = folder.shown(), folder.attempts()[-1]
    unfinished = latest if folder.attempt is None and shown != latest else None
    return read_explanations(folder.load(shown), folder.arrays, unfinished=unfinished)


def is_explained(reference: str, where: Path | None = None) -> bool:
    """Whether a reference names a run of this kind; `last` does if the latest of all is one."""
    folder = find_run(reference, where)
    return find_kind(folder, folder.attempts()[-1]) == IMPORTANCES


def read_explanations(run: Run, arrays: Path, *, unfinished: int | None = None) -> Explanations:
    plan = run.plan
    if not all(isinstance(spec, ImportancesSpec) for spec in plan.specs):
        kind = run.facts.kind
        raise RunError(f"Run {plan.run_id} explains no models: it is {add_article(kind)} run.")
    return Explanations(collect_fits(run, unfinished=unfinished), arrays.absolute())


class ImportancesKind(BenchmarkKind):
    """The scores of the fits, and what their models hold to be most important."""

    workloads: ClassVar[frozenset[str]] = frozenset({IMPORTANCES})

    @cached_property
    def findings(self) -> Any:
        """The explanations, as `load_importances` gives them."""
        return read_explanations(self.run, self.folder.arrays)

    def parameters(self, cells: Competing) -> dict[str, Any]:
        asked = cells.spec.model_dump(mode="json", include={"kinds", "permutations", "max_rows", "groups"})
        return {**super().parameters(cells), **asked}

    def summary(self, cells: Competing) -> dict[str, float | None]:
        """The mean importances of the most important features, by kind."""
        found = [result for result in cells.results if isinstance(result, Explanation)]
        return {f"{kind}.{feature}": value for kind in KINDS for feature, value in self._top(found, kind)}

    def _top(self, cells: list[Explanation], kind: Kind) -> Iterator[tuple[str, float]]:
        values = [found for cell in cells if (found := self.findings.importances(cell, kind)) is not None]
        if values:
            means = np.mean(values, axis=0)
            for place in np.argsort(-means, kind="stable")[:_TOP]:
                yield cells[0].units[place].name, float(means[place])

    def files(self) -> dict[str, str]:
        report = self.findings.to_model()
        return {"report.html": report.to_html(), "results.json": report.to_json()}
