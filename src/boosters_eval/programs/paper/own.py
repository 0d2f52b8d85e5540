"""Results from elsewhere: a CSV or JSON file of one's own numbers, and a template of one for a specification."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from boosters_eval.core.errors import ConfigError, FileFormatError, suggest
from boosters_eval.core.files import load_json, read_text, write_atomically
from boosters_eval.core.findings import Findings
from boosters_eval.core.terms import named, the
from boosters_eval.programs.paper.comparison import Measured, PaperResults, Summary
from boosters_eval.programs.paper.specification import (
    DeclaredTarget,
    PaperSpecification,
    Targets,
    make_target_name,
    read_specification,
)
from boosters_eval.programs.paper.targets import find_targets
from boosters_eval.programs.paper.tolerances import canonicalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.request import InitResultsRequest
    from boosters_eval.programs.paper.specification import PaperResult, PaperTable

MAX_RECORDS = 100_000
KNOWN = ("table", "model", "dataset", "metric", "value", "seed", "std", "n")
_OTHERS = {"data set": "dataset", "data_set": "dataset", "row": "model", "method": "model", "score": "value"}


class _Value(NamedTuple):
    """A number of a file, under the names of the specification."""

    place: str
    metric: str
    value: float
    seed: int | None
    std: float | None
    n: int | None


class _Key(NamedTuple):
    table: str
    row: str
    dataset: str


def read_own(path: Path, spec: PaperSpecification, digest: str) -> PaperResults | None:
    """The results that a file of one's own holds; None for a file that this program wrote."""
    text = read_text(path)
    if path.suffix.lower() not in {".csv", ".tsv"}:
        if not text.lstrip().startswith(("{", "[")):
            return None
        content = load_json(text, str(path))
        if isinstance(content, dict) and "results" not in content:
            return None  # its kind is told by whoever reads it
        records = [*_list_records(content, path)]
    else:
        records = [*_read_csv(text, path)]
    found: dict[_Key, list[_Value]] = {}
    for place, record in records:
        for key, value in _match(place, record, spec):
            found.setdefault(key, []).append(value)
    if not found:
        raise FileFormatError(f"{path} has no value: it must have {_SCHEMA}.")
    targets = tuple(_measure(key, values) for key, values in found.items())
    return PaperResults(paper=spec.paper, specification_digest=digest, run_id=None, targets=targets)


_SCHEMA = "the columns model, dataset, metric and value, or model, dataset and one for each metric"


def _read_csv(text: str, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    text = text.removeprefix("\ufeff")
    head = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text), delimiter=max(",;\t", key=head.count), strict=True)
    header: list[str] = []
    try:
        for row in rows:
            place = f"{path}, line {rows.line_num}"
            if not header:
                header = [name.strip() for name in row]
                _check_header(header, place)
            elif any(cell.strip() for cell in row):
                if len(row) != len(header):
                    raise FileFormatError(f"{place}: A row must have {len(header)} cells. Got {len(row)} instead.")
                yield place, {name: cell.strip() for name, cell in zip(header, row, strict=True)}
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {rows.line_num}: This is not CSV: {error}.") from None


def _list_records(content: Any, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The records of a JSON file: a list of objects, or an object that has them as its `results`."""
    records = content["results"] if isinstance(content, dict) else content
    if not isinstance(records, list) or len(records) > MAX_RECORDS:
        raise FileFormatError(f"{path} must have a list of at most {MAX_RECORDS} results.")
    for number, record in enumerate(records, 1):
        place = f"{path}, result {number}"
        if not isinstance(record, dict) or any(isinstance(value, (dict, list)) for value in record.values()):
            raise FileFormatError(f"{place}: A result must be an object of names and values.")
        _check_header([*record], place)
        yield place, {name: "" if value is None else value for name, value in record.items()}


def _name(column: str) -> str:
    plain = column.strip().lower()
    return _OTHERS.get(plain, plain)


def _check_header(header: Sequence[str], place: str) -> None:
    names = [_name(column) for column in header]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FileFormatError(f"{place}: The column '{twice[0]}' is there twice.")
    others = [name for name in names if name not in KNOWN]
    if "model" not in names or not ({"metric", "value"} <= {*names} or others):
        raise FileFormatError(f"{place}: A file of results must have {_SCHEMA}. Got {', '.join(header)} instead.")
    if {"metric", "value"} <= {*names} and others:
        raise FileFormatError(f"{place}: There is no column '{others[0]}' beside 'value'.{suggest(others[0], KNOWN)}")


def _match(place: str, record: Mapping[str, Any], spec: PaperSpecification) -> Iterator[tuple[_Key, _Value]]:
    """The values of a record under the names of the specification: each is of one result there."""
    told = {_name(column): value for column, value in record.items()}
    pairs = (
        [(str(told["metric"]), told["value"], told.get("std", ""))]
        if {"metric", "value"} <= {*told}
        else [
            (column, value, record.get(f"{column}_std", ""))
            for column, value in record.items()
            if _name(column) not in KNOWN and not (column.endswith("_std") and column.removesuffix("_std") in record)
        ]
    )
    for metric, value, std in pairs:
        if value == "":
            continue  # a cell of a template that was not filled in
        table, result, name = _find_result(place, told, metric, spec)
        seed, n = _read_whole(place, told, "seed"), _read_whole(place, told, "n")
        spread = None if std == "" else _read_number(place, f"std of {metric}", std)
        key = _Key(table.id, result.row, result.dataset)
        yield key, _Value(place, name, _read_number(place, metric, value), seed, spread, n)


def _find_result(
    place: str, told: Mapping[str, Any], metric: str, spec: PaperSpecification
) -> tuple[PaperTable, PaperResult, str]:
    """The one result that a record is about. What fits none, or several, is said with what there is."""
    every = [(table, result, name) for table in spec.tables for result in table.results for name in result.values]
    left = every
    for what, given, names in (
        ("table", told.get("table", ""), lambda it: (it[0].id,)),
        ("model", told.get("model", ""), lambda it: (it[1].row, it[1].model)),
        ("dataset", told.get("dataset", ""), lambda it: (it[1].dataset,)),
        ("metric", metric, lambda it: (it[2],)),
    ):
        if given == "":
            continue
        same = canonicalize if what == "metric" else _squeeze
        fitting = [it for it in left if any(same(name) == same(str(given)) for name in names(it))]
        if not fitting:
            known = [name for it in left for name in names(it)]
            raise FileFormatError(
                f"{place}: The specification has no {what} '{given}' for such a result."
                f"{suggest(str(given), known)} There is {', '.join(dict.fromkeys(known[:200]))[:300]}."
            )
        exact = [it for it in fitting if str(given) in names(it)]
        left = exact or fitting
    if len(left) > 1:
        first, second = left[0], left[1]
        ways = [what for what, a, b in (
            ("table", first[0].id, second[0].id), ("model", first[1].row, second[1].row),
            ("dataset", first[1].dataset, second[1].dataset)) if a != b]  # fmt: skip
        two = " and ".join(f"'{make_target_name(table.id, one.row, one.dataset)}'" for table, one, _ in left[:2])
        raise FileFormatError(f"{place}: It fits {two}: say the {ways[0] if ways else 'metric'}.")
    return left[0]


def _squeeze(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.lower())


def _read_number(place: str, what: str, text: Any) -> float:
    try:
        return float("" if isinstance(text, bool) else text)
    except (ValueError, OverflowError):
        raise FileFormatError(f"{place}: The {what} must be a number. Got '{text!s:.50}' instead.") from None


def _read_whole(place: str, told: Mapping[str, Any], what: str) -> int | None:
    text = told.get(what, "")
    if text == "":
        return None
    if isinstance(text, bool) or not re.fullmatch(r"-?\d{1,18}", str(text)) or (what == "n" and int(text) < 1):
        raise FileFormatError(f"{place}: The {what} must be a whole number. Got '{text!s:.50}' instead.")
    return int(text)


def _measure(key: _Key, found: Sequence[_Value]) -> Measured:
    """The values of one result, in the order of their seeds."""
    by_metric: dict[str, list[_Value]] = {}
    for one in found:
        by_metric.setdefault(one.metric, []).append(one)
    summaries: dict[str, Summary] = {}
    for metric, ones in by_metric.items():
        counts = Counter(one.seed for one in ones if one.seed is not None)
        again = next((seed for seed, count in counts.items() if count > 1), None)
        if again is not None:
            place = [one.place for one in ones if one.seed == again][1]
            raise FileFormatError(f"{place}: There is already a '{metric}' of '{key.row}' with the seed {again}.")
        summed = next((one for one in ones if one.std is not None or one.n is not None), None)
        if summed is not None and len(ones) > 1:
            raise FileFormatError(f"{summed.place}: A value with a std or an n must be the only one of '{metric}'.")
        if summed is not None:
            summaries[metric] = Summary(std=summed.std, n=summed.n or 1)
    seeds = tuple(dict.fromkeys(one.seed for one in found if one.seed is not None))
    return Measured(
        table=key.table, row=key.row, dataset=key.dataset, primary=True, status="ok", seeds=seeds,
        values={
            metric: tuple(one.value for one in sorted(ones, key=lambda one: (one.seed is not None, one.seed or 0)))
            for metric, ones in by_metric.items()
        },
        summaries=summaries, planned=max(len(ones) for metric, ones in by_metric.items()),
        conditions={"results": "brought from elsewhere"},
    )  # fmt: skip


def target_what_is_there(spec: PaperSpecification, results: PaperResults) -> PaperSpecification:
    """The specification with what the results are of as its targets, metric by metric, where it names none itself."""
    declared = spec.reproduction_targets
    if declared.primary or declared.secondary:
        return spec
    primary = tuple(
        DeclaredTarget(table=found.table, rows=(found.row,), datasets=(found.dataset,)) for found in results.targets
    )
    brought = {_Key(found.table, found.row, found.dataset): {*found.values} for found in results.targets}
    tables = tuple(
        table.replace(
            results=tuple(_keep(each, brought.get(_Key(table.id, each.row, each.dataset))) for each in table.results)
        )
        for table in spec.tables
    )
    return spec.replace(reproduction_targets=Targets(primary=primary), tables=tables)


def _keep(result: PaperResult, metrics: set[str] | None) -> PaperResult:
    """A result with the metrics alone that were brought for it; nobody asked for the others."""
    if metrics is None:
        return result
    left = {name: value for name, value in result.metrics.items() if name in metrics or name[:-4] in metrics}
    return result.replace(metrics=left)


@dataclass(frozen=True)
class WrittenTemplate(Findings):
    """A file to be filled in."""

    path: Path
    rows: int
    spec: Path

    def show(self, screen: Screen) -> None:
        screen.note(f"Wrote {self.path}. Fill in its {self.rows} values, or delete rows, and then compare:")
        screen.note(f"  boosters-eval paper compare --results {self.path} --paper {self.spec}")


def init_results(request: InitResultsRequest) -> WrittenTemplate:
    """Write a file with a row for each value of the targets, or of all tables where there are none."""
    if request.out.exists() and not request.force:
        raise ConfigError(
            f"{the('out')} must name a new file, or be given with {named('force')}. {request.out} exists."
        )
    if request.out.suffix.lower() != ".csv":
        raise ConfigError(f"{the('out')} must end in .csv. Got '{request.out}' instead.")
    spec = read_specification(request.spec)
    wanted = {(it.table.id, it.row, it.dataset_name) for it in find_targets(spec, request.spec.parent)}
    every = [
        (table, result)
        for table in spec.tables
        for result in table.results
        if not wanted or (table.id, result.row, result.dataset) in wanted
    ]
    if not every:
        raise ConfigError(f"{request.spec} has no results to be reproduced.")
    out = io.StringIO()
    count = _write_template(csv.writer(out, lineterminator="\n"), every, request)
    write_atomically(request.out, out.getvalue())
    return WrittenTemplate(request.out, count, request.spec)


def _write_template(write: Any, every: Sequence[tuple[PaperTable, PaperResult]], request: InitResultsRequest) -> int:
    seeds = range(request.seeds or 1)
    metrics = list(dict.fromkeys(name for _, result in every for name in result.values))
    if request.wide:
        write.writerow(["table", "model", "dataset", "seed", *metrics])
        rows = [[table.id, one.row, one.dataset, seed, *[""] * len(metrics)] for table, one in every for seed in seeds]
        write.writerows(rows)
        return sum(len(one.values) for _, one in every) * len(seeds)
    write.writerow(["table", "model", "dataset", "metric", "seed", "value", "std", "n"])
    rows = [
        [table.id, one.row, one.dataset, name, seed, "", "", ""]
        for table, one in every
        for name in one.values
        for seed in seeds
    ]
    write.writerows(rows)
    return len(rows)
