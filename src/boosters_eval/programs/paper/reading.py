"""A specification file is read, and its names are checked against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import suggest
from boosters_eval.core.files import read_text
from boosters_eval.programs.paper.source import PlacedError, parse_yaml, place
from boosters_eval.programs.paper.specification import PaperSpecification

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from boosters_eval.programs.paper.specification import DeclaredTarget, PaperTable


def read_specification(path: Path) -> PaperSpecification:
    """A specification file. Any mistake is one sentence with the file, the line and the nearest valid name."""
    data = parse_yaml(read_text(path), str(path))
    found = PaperSpecification.model_validate(data)
    for fault, where in _faults(found):
        raise PlacedError(f"{place(data, where)}{fault}")
    return found


def _faults(spec: PaperSpecification) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Names that lead nowhere or are there twice, with the path to them."""
    yield from _doubled("table id", [table.id for table in spec.tables], ("tables",))
    for i, table in enumerate(spec.tables):
        at = ("tables", i)
        rows, datasets = [row.key for row in table.models], [dataset.name for dataset in table.datasets]
        yield from _doubled("name of models", rows, (*at, "models"))
        yield from _doubled("name of datasets", datasets, (*at, "datasets"))
        known_rows, known_datasets, seen = set(rows), set(datasets), set()
        for j, result in enumerate(table.results):
            here = (*at, "results", j)
            if rows and result.row not in known_rows:
                yield _unknown("row", result.row, table.id, rows), (*here, "model")
            if datasets and result.dataset not in known_datasets:
                yield _unknown("data set", result.dataset, table.id, datasets), (*here, "dataset")
            if (result.row, result.dataset) in seen:
                yield f"'{table.id}' has two results of '{result.row}' on '{result.dataset}'.", here
            seen.add((result.row, result.dataset))
        yield from _metric_faults(table, at)
    for kind in ("primary", "secondary"):
        for i, target in enumerate(getattr(spec.reproduction_targets, kind)):
            yield from _target_faults(spec, target, ("reproduction_targets", kind, i))


def _metric_faults(table: PaperTable, at: tuple[str | int, ...]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    known = {name for result in table.results for name in result.values}
    for name in table.tolerance if table.results else ():
        if name.removesuffix("_relative") not in known and name not in known:
            yield f"'{table.id}' has no metric '{name}'.{suggest(name, known)}", (*at, "tolerance", name)
    for key in ("directions", "our_units") if table.results else ():
        for name in getattr(table, key):
            if name not in known:
                yield f"'{table.id}' has no metric '{name}'.{suggest(name, known)}", (*at, key, name)
    for i, result in enumerate(table.results):
        for name in result.units:
            if name not in result.values:
                sentence = f"The result has no metric '{name}'.{suggest(name, result.values)}"
                yield sentence, (*at, "results", i, "units", name)
    main = table.primary_metric
    if main and table.results and table.lower_is_better is not None and main not in known:
        yield f"'{table.id}' has no metric '{main}'.{suggest(main, known)}", (*at, "primary_metric")


def _target_faults(
    spec: PaperSpecification, target: DeclaredTarget, at: tuple[str | int, ...]
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    table = spec.table(target.table)
    if table is None:
        ids = [table.id for table in spec.tables]
        yield (
            f"A target names the table '{target.table}', which is not there.{suggest(target.table, ids)}",
            (*at, "table"),
        )
        return
    if not table.row_keys:  # not transcribed yet: its targets are reported as missing
        return
    names = {*table.row_keys, *(row.name for row in table.models), *(result.model for result in table.results)}
    for i, row in enumerate(target.rows):
        if row not in names:
            yield _unknown("row", row, table.id, table.row_keys), (*at, "rows", i)
    for i, dataset in enumerate(target.datasets):
        if dataset not in table.dataset_names:
            yield _unknown("data set", dataset, table.id, table.dataset_names), (*at, "datasets", i)


def _unknown(kind: str, name: str, table: str, known: Iterable[str]) -> str:
    return f"'{table}' has no {kind} '{name}'.{suggest(name, known)}"


def _doubled(kind: str, names: Iterable[str], at: tuple[str | int, ...]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield f"The {kind} '{name}' is there twice.", (*at, i)
        seen.add(name)
