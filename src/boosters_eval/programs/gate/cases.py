"""From a run and a baseline, or from a file of scores, to cases."""

from __future__ import annotations

import contextlib
import csv
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from boosters_eval.core.errors import ConfigError, FileFormatError, find_doubled, match, pick
from boosters_eval.core.files import compute_digest, load_json, read_text, split_lines
from boosters_eval.core.text import count_of
from boosters_eval.metrics import find, higher_is_better
from boosters_eval.programs.baseline.model import load_baseline
from boosters_eval.programs.baseline.snapshot import Snapshot, collect_parameters, describe_changed_parameters
from boosters_eval.programs.benchmark.records import BenchmarkError
from boosters_eval.programs.benchmark.results import REPORT_KIND, RESULTS_KIND, ResultCollection
from boosters_eval.programs.benchmark.spec import identity_of, spec_of
from boosters_eval.programs.gate.model import Case, CaseClass, GateError, Reference
from boosters_eval.runners.result import BenchmarkResult, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from boosters_eval.engine.plan import Plan
    from boosters_eval.programs.baseline.model import BaselineResult

    _CellResult = BenchmarkResult | BenchmarkError

_MOST_CASES = 1_000_000  # in half a gigabyte
_COLUMNS = ("case_id", "score", "class", "dataset")


class Quotation(NamedTuple):
    """What a decision quotes of a baseline or results file."""

    references: tuple[Reference, ...]
    sha256: str
    runs: dict[str, str | None]  # the ids of those it was recorded from, and when; of results, when they began
    library: str


def is_results(path: Path) -> bool:
    """Whether a file that serves as a baseline holds results, or a report on them."""
    raw = load_json(read_text(path), str(path))
    return isinstance(raw, dict) and raw.get("kind") in (RESULTS_KIND, REPORT_KIND)


def read_references(path: Path, library: str) -> Quotation:
    """What a baseline or results file contains for the library."""
    text = read_text(path)
    raw = load_json(text, str(path))
    if isinstance(raw, dict) and raw.get("kind") in (RESULTS_KIND, REPORT_KIND):
        run = ResultCollection.from_json(text, source=str(path))
        found, runs = Snapshot.of_run(run), {run.run_id: (run.metadata.begin or {}).get("at")}
    else:
        baseline = load_baseline(path)
        found, runs = Snapshot.of_baseline(baseline), {baseline.run_id: baseline.recorded_at.isoformat()}
        for source in sorted(baseline.sources.values(), key=lambda one: one.recorded_at):  # the latest attempt counts
            runs[source.run_id] = source.recorded_at.isoformat()
    results = found.results.values()
    known = {result.library for result in results}
    library = match(library, known.union(faulty.library for faulty in found.faulty)) or library
    references = tuple(_reference(result) for result in results if result.library == library)
    for faulty in found.faulty:
        if faulty.library == library:  # what is missing here could never count as lost
            raise GateError(f"{path} cannot serve as a baseline: {faulty.config}, cell {faulty.cell}: {faulty.text}.")
    if found.not_run:
        raise GateError(f"{path} cannot serve as a baseline: its run has no outcome for {found.not_run} of its cells.")
    if not references:
        raise ConfigError(
            f"{path} has no results for '{library}', only for {', '.join(sorted(known)) or 'no library'}."
        )
    known_runs = {name: at for name, at in runs.items() if name is not None}
    return Quotation(references, compute_digest(text), known_runs, library)


def _reference(result: BaselineResult) -> Reference:
    known, same = result.higher_is_better, ("config", "data_digest", "split_digests", "parameters", "dataset")
    return Reference(
        **{name: getattr(result, name) for name in same},
        metric=result.primary_metric,
        higher_is_better=higher_is_better(result.primary_metric) if known is None else known,
        mean=result.primary.mean,
        per_seed=result.primary.per_seed,
        profile=result.profile if result.parameters else None,
    )


def check_directions(references: Iterable[Reference]) -> None:
    """A known metric has one direction: read the other way round, a loss would be an improvement."""
    for reference in references:
        known = find(reference.metric)  # None: the user's own
        if known and known.higher_is_better != reference.higher_is_better:
            better = "higher" if known.higher_is_better else "lower"
            raise GateError(
                f"The baseline of {reference.config} says that {reference.metric} has another direction "
                f"than it has: {better} is better."
            )


def score_run(
    run: ResultCollection,
    library: str,
    references: Sequence[Reference],
    *,
    held_out: Iterable[str] = (),
    planned: Iterable[Record] = (),
) -> tuple[list[Case], list[str]]:
    """One case for each cell that the baseline has, and remarks on what could not be scored.

    A cell of the baseline without a usable result scores 0: nothing is promoted by leaving cells out. Where the
    baseline does not know its cells, those that were planned count, whether they ran or not.
    """
    every: list[Record] = [*planned, *run.results, *run.errors]
    library = pick("library of the run", library, [record.library for record in every])
    outcomes = _outcomes(run, library)
    apart = _held_out(every, held_out)
    unsupported = {u.config_name: u.reason for u in run.unsupported if u.library == library}
    datasets = _datasets(every, references)
    notes = []
    cases = []
    for reference in references:
        found = outcomes.get(reference.config, {})
        if not reference.per_seed:
            notes.append(f"{reference.config}: the baseline has no seeds, each seed is compared with its mean.")
        mine = [record for record in every if (record.config_name, record.library) == (reference.config, library)]
        for cell in reference.per_seed or dict.fromkeys(record.repeat.name for record in mine) or ["missing"]:
            score, reason = _score(reference, cell, found.get(cell), unsupported.get(reference.config))
            name: CaseClass | None = ("held_out" if reference.config in apart else "dev") if apart else None
            case_id, dataset = f"{reference.config}|{cell}", datasets[reference.config]
            cases.append(Case(case_id=case_id, score=score, class_=name, reason=reason, dataset=dataset))
        extra = len(found.keys() - reference.per_seed.keys()) if reference.per_seed else 0
        if extra:
            notes.append(f"{reference.config}: {extra} cell(s) of the run are not in the baseline and do not count.")
    new = [config for config in outcomes if config not in {reference.config for reference in references}]
    notes += [f"{config}: it is not in the baseline and does not count." for config in sorted(new)]
    return cases, notes


def list_planned(plan: Plan) -> list[Record]:
    """The cells of a plan, whether they ran or not."""
    return [
        Record(**identity_of(spec_of(cell)), library=cell.target.name, seed=cell.repeat.seed, fold=cell.repeat.fold)
        for cell in plan.cells
    ]


def _outcomes(run: ResultCollection, library: str) -> dict[str, dict[str, _CellResult]]:
    """By config and cell; with two outcomes for one cell, nobody can say which one counts."""
    found: dict[str, dict[str, _CellResult]] = {}
    every: list[_CellResult] = [*run.results, *run.errors]
    for outcome in every:
        if outcome.library == library:
            cells = found.setdefault(outcome.config_name, {})
            if outcome.repeat.name in cells:
                raise GateError(f"The run has {outcome.config_name}, cell {outcome.repeat.name}, more than once.")
            cells[outcome.repeat.name] = outcome
    return found


def _datasets(records: Iterable[Record], references: Iterable[Reference]) -> dict[str, str]:
    """The data set of each config; the same data under another name is not another data set."""
    planned = {record.config_name: record.dataset_name for record in records}
    first: dict[str, str] = {}
    found = {}
    for reference in references:
        name = planned.get(reference.config) or reference.dataset or reference.config
        found[reference.config] = first.setdefault(reference.data_digest or name, name)
    return found


def count_flaky(run: ResultCollection, library: str, references: Iterable[Reference]) -> tuple[int, list[str]]:
    """How many of the baseline's cells finished only after they had failed, and a sentence per config."""
    sentences = []
    count = 0
    for reference in references:
        known = reference.per_seed
        tries = [
            result.failed_before
            for result in run.flaky
            if (result.config_name, result.library) == (reference.config, library)
            and (not known or result.repeat.name in known)
        ]
        if tries:
            count += len(tries)
            times = "once" if max(tries) == 1 else f"up to {max(tries)} times"
            sentences.append(f"{reference.config}: {len(tries)} cell(s) failed {times} before they finished.")
    return count, sentences


def check_held_out(cases: Iterable[Case]) -> None:
    """A data set is held out whole, and not all of them are."""
    held_out: dict[str, set[bool]] = {}
    for case in cases:
        held_out.setdefault(case.unit, set()).add(case.class_ == "held_out")
    for unit, found in held_out.items():
        if len(found) > 1:
            raise ConfigError(f"A data set must be held out whole. Got '{unit}', of which only some cases are.")
    if all(found == {True} for found in held_out.values()):
        raise ConfigError("Some data sets must not be held out, to hold the others against. Got all as held out.")


def describe_changed_work(run: ResultCollection, library: str, references: Sequence[Reference]) -> list[str]:
    """The configs whose parameters or profile are not the recorded ones, one sentence each."""
    sentences = []
    for reference in references:
        mine = [r for r in run.results if (r.config_name, r.library) == (reference.config, library)]
        if not mine:
            continue
        first = next(iter(reference.per_seed), None)  # the cell that the recorded parameters are of
        result = min(mine, key=lambda result: result.repeat.name != first)
        changed = describe_changed_parameters(reference.parameters, collect_parameters(result))
        if reference.profile not in (None, result.profile):
            changed = f"profile {reference.profile} → {result.profile}" + (f"; {changed}" if changed else "")
        if changed:
            sentences.append(f"{reference.config}: {changed}.")
    return sentences


def _held_out(records: Sequence[Record], names: Iterable[str]) -> set[str]:
    """The configs that are held out; a name is a config's or a data set's."""
    known = {name for record in records for name in (record.config_name, record.dataset_name)}
    meant = {pick("held-out config or data set", name, known) for name in names}
    return {record.config_name for record in records if meant & {record.config_name, record.dataset_name}}


def _score(reference: Reference, cell: str, outcome: _CellResult | None, unsupported: str | None) -> tuple[float, str]:
    if outcome is None:
        return 0.0, f"unsupported: {unsupported}" if unsupported else "missing: the run has no such cell"
    if isinstance(outcome, BenchmarkError):
        return 0.0, f"failed: {outcome.error_type} in {outcome.phase}"
    _check_same_work(reference, cell, outcome)
    value = outcome.metrics.get(reference.metric)
    if value is None or not math.isfinite(value):
        return 0.0, f"no score: {reference.metric} is {'absent' if value is None else value}"
    expected = reference.per_seed.get(cell, reference.mean)
    return measure_retained(expected, value, higher_is_better=reference.higher_is_better), ""


def measure_retained(baseline: float, current: float, *, higher_is_better: bool) -> float:
    """The share of the baseline's quality that is kept: 1 when nothing was lost, 0 where no ratio makes sense."""
    good, bad = (current, baseline) if higher_is_better else (baseline, current)
    if good >= bad:
        return 1.0
    return good / bad if good > 0 else 0.0


def _check_same_work(reference: Reference, cell: str, result: BenchmarkResult) -> None:
    """Baselines keep the beginning of a digest; what is unknown on one side cannot differ."""
    pairs = {
        "split": (reference.split_digests.get(cell), result.split_digest),
        "data": (reference.data_digest, result.data_digest),
    }
    for what, (before, now) in pairs.items():
        if before and now and not now.startswith(before):
            raise GateError(
                f"The {what} of {reference.config}, seed {result.seed}, differs from the baseline's: "
                "nothing can be decided from different work."
            )


def read_scores(path: Path) -> tuple[list[Case], str]:
    """Cases from CSV or JSON with case_id, score and optionally class and dataset; and the file's digest."""
    text = read_text(path)
    rows = _csv_rows(path, text) if path.suffix.lower() == ".csv" else _json_rows(path, text)
    cases = []
    for number, row in enumerate(rows, 1):
        if number > _MOST_CASES:
            raise FileFormatError(f"{path} has more than {_MOST_CASES} cases.")
        try:
            case = Case.model_validate(row)
            cases.append(case.replace(dataset=case.dataset.strip()))  # a stray space is not another data set
        except ConfigError as error:
            raise FileFormatError(f"{path}, case {number}: {error}") from None
    if not cases:
        raise FileFormatError(f"{path} holds no case.")
    if doubled := find_doubled(case.case_id for case in cases):
        raise FileFormatError(f"{path} has the case '{doubled[0]}' more than once.")
    named = [case.case_id for case in cases if case.dataset]
    if 0 < len(named) < len(cases):
        nameless = next(case.case_id for case in cases if not case.dataset)
        raise FileFormatError(f"{path} must name the dataset of every case or of none. Got none of '{nameless}'.")
    return cases, compute_digest(text)


def _json_rows(path: Path, text: str) -> list[Any]:
    raw = load_json(text, str(path))
    if isinstance(raw, dict) and (raw.keys() == {"cases"} or isinstance(raw.get("cases"), list)):
        for name in raw.keys() - {"cases"}:
            raise FileFormatError(f"{path} has the unknown key '{name}' besides 'cases'.")
        raw = raw["cases"]
    elif isinstance(raw, dict):
        raw = [{"case_id": name, "score": value} for name, value in raw.items()]
    if not isinstance(raw, list):
        raise FileFormatError(f"{path} must hold a list of cases with case_id and score.")
    return raw


def _csv_rows(path: Path, text: str) -> Iterator[dict[str, Any]]:
    lines = _csv_lines(path, text)
    columns = [name.strip() for name in next(lines, [])]
    if not {"case_id", "score"} <= set(columns) <= set(_COLUMNS) or len(set(columns)) < len(columns):
        raise FileFormatError(
            f"{path} must have the columns case_id, score and optionally class and dataset. "
            f"Got {', '.join(columns) or 'none'}."
        )
    for number, values in enumerate(lines, 1):
        if len(values) != len(columns):
            some = count_of(len(values), "value")
            raise FileFormatError(f"{path}, case {number}, has {some} for {len(columns)} columns.")
        row: dict[str, Any] = dict(zip(columns, values, strict=True))
        if not row.get("class"):
            row.pop("class", None)  # an empty class means no class
        with contextlib.suppress(ValueError):  # what is no number stays text, for the model to refuse
            row["score"] = float(row["score"])
        yield row


def _csv_lines(path: Path, text: str) -> Iterator[list[str]]:
    try:
        yield from filter(None, csv.reader(split_lines(text.removeprefix("\ufeff")), strict=True))
    except csv.Error as error:
        raise FileFormatError(f"{path} is not CSV: {error}.") from None
