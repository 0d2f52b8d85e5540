"""The collection of results and errors that statistics and reports read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError

from boosters_eval.core.errors import ConfigError, FileFormatError, match, require
from boosters_eval.core.files import (
    FORMAT,
    MAX_RESULTS,
    MAX_TEXT,
    Format,
    check_format,
    check_path,
    load_json,
    read_text,
    write_atomically,
)
from boosters_eval.core.model import FileModel
from boosters_eval.core.text import count_of, escape_json
from boosters_eval.metrics import canonical, higher_is_better
from boosters_eval.metrics.catalog import OF_MACHINE
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.records import (
    ROW_FIELDS,
    BenchmarkError,
    RunMetadata,
    Unavailable,
    Unsupported,
    row_of,
    write_csv,
)
from boosters_eval.runners.config import parse_member
from boosters_eval.runners.parameters import BoosterType
from boosters_eval.runners.result import BenchmarkResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from boosters_eval.datasets.config import DataAudit
    from boosters_eval.engine.folder import RunFolder
    from boosters_eval.programs.benchmark.against import AgainstCheck
    from boosters_eval.programs.benchmark.evidence import RowEvidence
    from boosters_eval.programs.benchmark.records import Absence
    from boosters_eval.programs.benchmark.tables.plots import PlotKind
    from boosters_eval.reports.html.plots import Plot
    from boosters_eval.runners.result import Record
    from boosters_eval.stats.significance import TestName


RESULTS_KIND = "boosters-eval results"
REPORT_KIND = "boosters-eval report"
_OUTCOMES = ("results", "errors", "unsupported", "unavailable")
_OF_RUN = ("run_id", "suite", "metadata")


class ResultsDocument(FileModel):
    """The file form of a collection."""

    model_config = ConfigDict(extra="forbid")

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval results"] = "boosters-eval results"
    run_id: str | None = None
    suite: str | None = None
    answer: tuple[str, ...] | None = None  # what whoever wrote it concluded; the outcomes are what is read back
    metadata: RunMetadata = RunMetadata()
    results: list[BenchmarkResult] = Field(default_factory=list)
    errors: list[BenchmarkError] = Field(default_factory=list)
    unsupported: list[Unsupported] = Field(default_factory=list)
    unavailable: list[Unavailable] = Field(default_factory=list)

    def dump(self, *, include_metadata: bool = True) -> str:
        left_out = None if include_metadata else {"metadata"}
        return escape_json(self.model_dump_json(indent=1, exclude_none=True, exclude=left_out)) + "\n"


class ResultCollection:
    """Results and errors of one run. It never runs anything."""

    def __init__(
        self,
        results: Iterable[BenchmarkResult] = (),
        errors: Iterable[BenchmarkError] = (),
        *,
        unsupported: Iterable[Unsupported] = (),
        unavailable: Iterable[Unavailable] = (),
        run_id: str | None = None,
        suite: str | None = None,
        metadata: RunMetadata | None = None,
        folder: RunFolder | None = None,
    ) -> None:
        for name, value in (("results", results), ("errors", errors)):
            require(name, value, Iterable, "a list of outcomes")
        self.results = list(results)
        self.errors = list(errors)
        self.unsupported = list(unsupported)
        self.unavailable = list(unavailable)
        self.run_id = run_id
        self.suite = suite
        self.metadata = metadata or RunMetadata()
        self.folder = folder  # of the run, with its predictions; None: the results come from a file

    @property
    def reference(self) -> str | None:
        """What a command calls this attempt at the run: its id, and its number if there are several."""
        numbers = {*(self.folder.attempts() if self.folder is not None else ()), self.metadata.attempt or 1}
        return self.run_id if numbers == {1} or self.run_id is None else f"{self.run_id}/{self.metadata.attempt or 1}"

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        found = sum(len(audit.findings) for audit in self.audits.values())
        about = f", {count_of(found, 'finding')} about the data" if found else ""
        return f"ResultCollection({len(self.results)} results, {len(self.errors)} errors{about})"

    def filter(
        self,
        library: str | None = None,
        dataset: str | None = None,
        booster: BoosterType | str | None = None,
        task: Task | str | None = None,
        *,
        config: str | None = None,
    ) -> ResultCollection:
        """What meets all criteria: outcomes, and libraries without any."""
        for name, value in (("library", library), ("dataset", dataset), ("config", config)):
            require(name, value, (str, type(None)), "a name")
        wanted = {
            "library": library,
            "dataset_name": dataset,
            "booster_type": None if booster is None else parse_member("booster", booster, BoosterType).value,
            "task": None if task is None else parse_member("task", task, Task),
            "config_name": config,
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        for name, value in (("library", library), ("dataset_name", dataset), ("config_name", config)):
            if value is not None:
                known = {getattr(one, name) for one in (*self.results, *self.errors)}
                given[name] = match(value, known) or value

        def keep(record: Record | Absence) -> bool:
            return all(getattr(record, name) == value for name, value in given.items())

        kept: dict[str, Any] = {name: filter(keep, getattr(self, name)) for name in _OUTCOMES}
        return ResultCollection(**kept, **{name: getattr(self, name) for name in (*_OF_RUN, "folder")})

    @cached_property
    def evidence(self) -> RowEvidence:
        """What the fits predicted for each row: `evidence.of(result)` gives the arrays, or why there are none."""
        from boosters_eval.programs.benchmark.evidence import RowEvidence  # noqa: PLC0415 (read when it is needed)

        return RowEvidence(self)

    @property
    def audits(self) -> dict[str, DataAudit]:
        """What was found in each data set before it was used, by name."""
        return self.metadata.audits

    @property
    def flaky(self) -> list[BenchmarkResult]:
        """The cells that finished only after they had failed: their results are no proof that they work."""
        return [result for result in self.results if result.failed_before]

    @property
    def cells_by_machine(self) -> dict[str, int]:
        """How many cells each machine ran, by digest; empty for a run whose cells name none."""
        outcomes: list[BenchmarkResult | BenchmarkError] = [*self.results, *self.errors]
        return dict(Counter(outcome.machine for outcome in outcomes if outcome.machine is not None))

    @property
    def machine_digest(self) -> str | None:
        """The machine of all its cells; None if that is not known, or if there are several."""
        named: list[Any] = [*self.cells_by_machine] or [self.metadata.facts.machine.get("digest")]
        return None if len(named) > 1 or named[0] is None else str(named[0])

    @property
    def n_left_out(self) -> int:
        """How many outcomes of the run are not here: they were filtered out, or taken out of the file."""
        known = len(self.results) + len(self.errors) + (self.metadata.n_missing or 0)
        return max(0, (self.metadata.n_cells or 0) - known)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per result: the basis of every tabular export."""
        return [row_of(result) for result in self.results]

    def to_dataframe(self) -> pd.DataFrame:
        """One row per result, one column per metric."""
        import pandas as pd  # noqa: PLC0415 (slow to import, seldom needed)

        return pd.DataFrame(self.rows(), columns=None if self.results else list(ROW_FIELDS))

    def summary(self, group_by: Sequence[str] = ("dataset", "booster", "library")) -> pd.DataFrame:
        """Mean, standard deviation (ddof 1) and n of every metric in each group; variants are kept apart.

        Times and memory of different machines have no common mean, and are NaN unless `group_by` names "machine" too.
        """
        frame = self.to_dataframe()
        require("group_by", group_by, (str, list, tuple), "a list of columns")
        keys = [group_by] if isinstance(group_by, str) else list(group_by)
        unknown = [key for key in keys if not isinstance(key, str) or key not in frame.columns]
        if unknown or not keys:
            got = repr(unknown[0]) if unknown else "nothing"
            raise ConfigError(f"The 'group_by' parameter of summary must name columns. Got {got} instead.")
        if "variant" not in keys and frame["variant"].notna().any():
            keys.append("variant")
        values = [name for name in frame.columns if name in self.metric_names() or name.endswith(("_s", "_mb"))]
        if not values:
            return frame[keys]
        if "machine" in frame.columns and "machine" not in keys:
            apart = frame.groupby(keys, dropna=False)["machine"].transform("nunique", dropna=False) > 1
            frame.loc[apart, [name for name in values if name in OF_MACHINE]] = float("nan")
        return frame.groupby(keys, dropna=False, sort=False)[values].agg(["mean", "std", "count"])

    def metric_names(self) -> list[str]:
        """All metrics of the results, in the order of first appearance."""
        return list(dict.fromkeys(name for result in self.results for name in result.metrics))

    def _named(self, metric: str) -> str:
        """The name that the results have for a metric, which has others too: "log_loss" is "logloss"."""
        return metric if metric in self.metric_names() else canonical(metric)

    def document(self) -> ResultsDocument:
        return ResultsDocument(**{name: getattr(self, name) for name in (*_OUTCOMES, *_OF_RUN)})

    def to_json(self, path: str | Path | None = None, *, include_metadata: bool = True) -> str:
        """The collection as JSON, also written to `path` if one is given.

        Without its metadata (machine, versions, commit, canonical parameters) it can still be checked and reported.
        """
        text = self.document().dump(include_metadata=include_metadata)
        if path is not None:
            write_atomically(check_path(path), text)
        return text

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV with a line per outcome, also written to `path` if one is given.

        The `status` of a result is ok, or flaky if its cell had failed before; the rules that any library should beat
        follow, once per split, with the status trivial. Failed cells and libraries without cells
        have a status and a reason instead of numbers: a table must not look whole because something is left out.
        """
        text = write_csv(self.results, [*self.errors, *self.unsupported, *self.unavailable])
        if path is not None:
            write_atomically(check_path(path), text)
        return text

    def best(
        self,
        metric: str,
        alpha: float | None = None,
        *,
        test: TestName = "rows",
        significance_level: float | None = None,
        margin: Any = None,
    ) -> pd.DataFrame:
        """The best library of each config, or `tie` if its lead is not significant (at the run's level by default).

        `significance_level` is the RFC's name for `alpha`.
        """
        from boosters_eval.programs.benchmark.comparisons import choose_best  # noqa: PLC0415 (a facade)

        require("metric", metric, str, "a name")
        for name, value in (("alpha", alpha), ("significance_level", significance_level)):
            require(name, value, (Real, type(None)), "a number between 0 and 1")
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"The '{name}' parameter must be between 0 and 1. Got {value} instead.")
        if alpha is not None and significance_level is not None:
            raise ConfigError("'significance_level' is another name of the 'alpha' parameter: give one of them.")
        level = significance_level if alpha is None else alpha
        more, level = higher_is_better(metric), self.metadata.level(level)
        how: Any = {"higher_is_better": more, "alpha": level, "test": test, "evidence": self.evidence}
        how["margins"] = self.metadata.margins(margin)
        return choose_best(self.results, self._named(metric), **how)

    def is_significant(
        self,
        library_a: str,
        library_b: str,
        metric: str,
        alpha: float | None = None,
        *,
        test: TestName = "rows",
        dataset: str | None = None,
        config: str | None = None,
    ) -> tuple[bool, float]:
        """Whether two libraries differ in one config, and the p-value; `test="welch"` is the RFC's test."""
        from boosters_eval.programs.benchmark.comparisons import decide_difference  # noqa: PLC0415 (a facade)

        for name, value in (("library_a", library_a), ("library_b", library_b), ("metric", metric)):
            require(name, value, str, "a name")
        rows = self.filter(dataset=dataset, config=config).results
        pair, more, level = (library_a, library_b), higher_is_better(metric), self.metadata.level(alpha)
        how: Any = {"higher_is_better": more, "alpha": level, "test": test, "evidence": self.evidence}
        return decide_difference(rows, pair, self._named(metric), **how)

    def regressions(
        self,
        against: str,
        *,
        test: TestName = "rows",
        alpha: float | None = None,
        margin: Any = None,
        require_proof: bool = False,
    ) -> AgainstCheck:
        """Whether any other competitor is worse than the one of this name, as --against has it.

        `.passed` says it, `.regressions` and `.unanswered` say where, `.exit_code` is that of the command. `.proven`
        says whether each was shown not to be worse by more than the margin; `require_proof` fails those in `.unproven`.
        """
        from boosters_eval.programs.benchmark.against import check_against  # noqa: PLC0415 (a facade)

        require("against", against, str, "the name of a competitor")
        return check_against(self, against, test=test, alpha=alpha, margin=margin, require_proof=require_proof)

    def to_markdown(
        self,
        highlight_best: bool = True,
        require_significance: bool = True,
        alpha: float | None = None,
        *,
        test: TestName = "rows",
        margin: Any = None,
    ) -> str:
        """The tables as Markdown. The best mean is bold if it is significant, or always if that is not required."""
        from boosters_eval.programs.benchmark.tables.build import build_tables  # noqa: PLC0415 (a facade)

        return build_tables(
            self,
            test=test,
            alpha=alpha,
            margin=margin,
            highlight=highlight_best,
            require_significance=require_significance,
        ).to_markdown()

    def _repr_html_(self) -> str:
        from boosters_eval.programs.benchmark.tables.build import build_tables  # noqa: PLC0415 (a facade)

        return build_tables(self)._repr_html_()

    def plot(
        self,
        kind: PlotKind = "strips",
        *,
        metric: str | None = None,
        reference: str | None = None,
        test: TestName = "rows",
        alpha: float | None = None,
        margin: Any = None,
    ) -> Plot:
        """The report's charts: strips, forest (against `reference`, by default the best), pareto or ranks.

        From kept predictions: reliability (of probabilities), residuals (of numbers) or coverage (of quantiles).
        A notebook shows them; `.save("chart.svg")` or `.save("chart.html")` writes them.
        """
        from boosters_eval.programs.benchmark.tables.plots import plot  # noqa: PLC0415 (a facade)

        return plot(self, kind, metric=metric, reference=reference, test=test, alpha=alpha, margin=margin)

    def save_partial(self, path: str | Path) -> None:
        """Save the outcomes so far."""
        self.to_json(path)

    @classmethod
    def load_partial(cls, path: str | Path) -> Self:
        """Read what `save_partial` or `to_json` wrote."""
        return cls.from_json(read_text(check_path(path), limit=MAX_RESULTS), source=str(path))

    @classmethod
    def from_json(cls, text: str, *, source: str = "results") -> Self:
        """Read the JSON form; any other content raises an error of one sentence."""
        require("text", text, str, "a string of JSON")
        kinds = (f'"{RESULTS_KIND}"', f'"{REPORT_KIND}"')
        if len(text) > MAX_TEXT and not any(kind in text[:4096] for kind in kinds):
            raise FileFormatError(f"{source} is not a boosters-eval results file.")
        raw = load_json(text, source)
        if isinstance(raw, dict) and raw.get("kind") == REPORT_KIND:
            check_format(raw.get("schema_version"), source, "a report")
            raw = raw.get("results")
            text = json.dumps(raw)
        if not isinstance(raw, dict) or raw.get("kind") != RESULTS_KIND:
            raise FileFormatError(f"{source} is not a boosters-eval results file.")
        check_format(raw.get("schema_version"), source, "a results file")
        try:
            document = ResultsDocument.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise FileFormatError(f"{source} is not a valid results file: {where}: {first['msg']}.") from None
        for result in document.results:
            if result.primary_metric is not None and result.primary_metric not in result.metrics:
                raise FileFormatError(f"{source}: {result.key} has no '{result.primary_metric}', its primary metric.")
        return cls(**{name: getattr(document, name) for name in (*_OUTCOMES, *_OF_RUN)})
