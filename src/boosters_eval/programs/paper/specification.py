"""A paper's tables, and what is to be reproduced of them: the file `benchmarks.yaml`."""

from __future__ import annotations

import math
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import AfterValidator, BeforeValidator, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from boosters_eval.core.errors import ConfigError, suggest
from boosters_eval.core.files import compute_digest, describe_format, read_text
from boosters_eval.core.model import Model, explain_error, find_first_error
from boosters_eval.programs.paper.source import PlacedError, PrintedFloat, PrintedInt, locate_error, parse_yaml
from boosters_eval.runners.parameters import TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SCHEMA_VERSION: Final = 1
Name = Annotated[str, MinLen(1)]
StdOver = Literal["seeds", "splits", "folds"]
Scalar = str | int | float | bool | None


_FILE_WORDS = {  # a file has keys and lists, where Python has parameters and tuples
    r"^\w+ has no parameter": "There is no key",
    r"^The ('[^']+') parameter of \w+": r"The key \1",
    r"\bmust be a valid (?:tuple|list)": "must be a list",
    r"\bmust be a valid string": "must be text",
    r"\bmust be a valid dictionary": "must be a mapping of keys to values",
}


class PlacedModel(Model):
    """A part of a specification file: a mistake in it is reported with its line."""

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            told = explain_error(cls, error)
            if isinstance(told, PlacedError):
                raise told from None
            sentence = str(told)
            for pattern, words in _FILE_WORDS.items():
                sentence = re.sub(pattern, words, sentence)
            path = (*find_first_error(error)["loc"], *getattr(told, "path", ()))
            raise locate_error(data, path, sentence) from None


class Quantity(Model):
    """A number with the digits in which the paper prints it."""

    value: float
    printed: str

    @property
    def decimals(self) -> int:
        """How many decimals are printed; negative where even the units are rounded: 1.2e3 has -2."""
        match = re.fullmatch(r"[-+]?(\d*)\.?(\d*)(?:[eE]([-+]?\d+))?", self.printed.replace(",", "").replace("_", ""))
        return len(match[2]) - int(match[3] or 0) if match else 0

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The number that a text such as "15,234" prints; None if it prints none that a computer can hold."""
        digits = text.replace(",", "").replace("_", "").strip()
        if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", digits):
            return None
        value = float(digits)
        return cls(value=value, printed=digits) if math.isfinite(value) else None


def _read_quantity(given: Any) -> Any:
    """A number of a YAML file, or a text such as "0.870", with its digits."""
    if isinstance(given, (PrintedInt, PrintedFloat)):
        return Quantity(value=float(given), printed=given.text)
    found = Quantity.read(given) if isinstance(given, str) else given
    if isinstance(given, bool) or found is None:
        raise ConfigError(f"A metric must have a number as its value. Got {given!r} instead.")
    return Quantity(value=float(given), printed=repr(given)) if isinstance(given, (int, float)) else found


Printed = Annotated[Quantity, BeforeValidator(_read_quantity)]


def _check_inside(text: str) -> str:
    """A path of a specification is relative to it, and does not leave its folder."""
    path = PurePath(text)
    if path.is_absolute() or ".." in path.parts or text.startswith("~"):
        raise ConfigError(
            f"A path in a specification must be relative to it and stay in its folder. Got '{text}' instead."
        )
    return text


InsidePath = Annotated[str, MinLen(1), AfterValidator(_check_inside)]


class SplitSizes(PlacedModel):
    """How many rows are trained on, used to stop early, and tested on. `official` is the data set's own test set."""

    train: Annotated[int, Ge(1)] | None = None
    validation: Annotated[int, Ge(1)] | None = None
    test: Annotated[int, Ge(1)] | Annotated[float, Gt(0), Lt(1)] | Literal["official"] = 0.2


class PaperDataset(PlacedModel):
    """A data set as the paper names it, and what stands for it here."""

    name: Name
    split: str = ""
    preprocessing: str = ""  # in the paper's words; what runs is named by the binding
    use: InsidePath | None = None  # a registered data set, or a file; None: the name, in lower case
    sizes: SplitSizes | None = None


class EarlyStopping(PlacedModel):
    rounds: Annotated[int, Ge(1)]
    metric: str | None = None  # the library's own name of it; None: its default


def _check_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    TrainingConfig(**parameters)
    if "early_stopping_rounds" in parameters:
        raise ConfigError("The 'early_stopping_rounds' parameter is written as 'early_stopping: {rounds: ...}'.")
    return parameters


class LibraryRun(PlacedModel):
    """A row that a library reproduces: trained, predicted and scored here."""

    library: Name  # or LIBRARY==VERSION, to train with the version that the paper used
    # The fields of TrainingConfig.
    parameters: Annotated[dict[str, Any], AfterValidator(_check_parameters)] = Field(default_factory=dict)
    native: dict[str, Any] = Field(default_factory=dict)  # the library's own, as it spells them; they win
    booster: Literal["gbdt", "gblinear", "linear_trees"] = "gbdt"
    profile: Literal["parity", "defaults"] = "parity"  # defaults: what is not given is left to the library
    preprocessing: tuple[str, ...] = ()  # steps in their order
    early_stopping: EarlyStopping | None = None

    @property
    def display_name(self) -> str:
        return self.library.partition("==")[0].strip()

    @property
    def has_version(self) -> bool:
        return "==" in self.library


class ModelRun(PlacedModel):
    """A row that a saved model reproduces: only predicted and scored here."""

    model: InsidePath  # relative to the specification
    format: Literal["xgboost", "lightgbm", "catboost", "boosters", "onnx", "pickle"] | None = None  # by the suffix
    preprocessing: tuple[str, ...] = ()


def _check_callable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", text):
        raise ConfigError(f"A callable must be written 'module:function'. Got '{text}' instead.")
    return text


class CallableRun(PlacedModel):
    """A row that a Python function reproduces: it returns the metrics."""

    callable: Annotated[str, AfterValidator(_check_callable)]  # module:function
    arguments: dict[str, Any] = Field(default_factory=dict)


class EstimatorRun(PlacedModel):
    """A row that an object with `fit` and `predict` reproduces, on the rows that libraries have."""

    estimator: Annotated[str, AfterValidator(_check_callable)]  # module:factory, which makes the object
    arguments: dict[str, Any] = Field(default_factory=dict)
    preprocessing: tuple[str, ...] = ()


class CommandRun(PlacedModel):
    """A row that a program reproduces: it prints the metrics as JSON."""

    command: Annotated[tuple[str, ...], MinLen(1)]


class EvaluatorRun(PlacedModel):
    """A row that a language model reproduces under one of the shipped evaluators."""

    evaluator: Literal["perplexity", "passkey", "needle"]
    model: InsidePath | None = None  # a folder or a hub name; None: that of the user
    arguments: dict[str, Any] = Field(default_factory=dict)


Binding = LibraryRun | ModelRun | EstimatorRun | CallableRun | CommandRun | EvaluatorRun
BINDINGS: dict[str, type[Binding]] = {
    "library": LibraryRun,
    "evaluator": EvaluatorRun,  # before `model`, which it may have too
    "model": ModelRun,
    "estimator": EstimatorRun,
    "callable": CallableRun,
    "command": CommandRun,
}


def _read_binding(given: Any) -> Any:
    """The kind of binding is told by the one key that only this kind has."""
    if not isinstance(given, dict):
        return given
    kind = next((key for key in BINDINGS if key in given), None)
    if kind is None:
        hint = next((hint for key in given if (hint := suggest(str(key), BINDINGS))), "")
        raise locate_error(given, (), f"A 'run' must have one of the keys {', '.join(BINDINGS)}.{hint}")
    return BINDINGS[kind].model_validate(given)


BoundRun = Annotated[Binding, BeforeValidator(_read_binding)]


class PaperRow(PlacedModel):
    """A row of a table: a model with its configuration. Rows of the same name are told apart by their group."""

    name: Name
    group: str = ""
    is_ours: bool = False
    is_baseline: bool = False
    config: str = ""
    run: BoundRun | None = None

    @property
    def key(self) -> str:
        return make_row_key(self.group, self.name)


class PaperResult(PlacedModel):
    """What the paper prints for a row and a data set. `accuracy_std` is the deviation of `accuracy`."""

    model: Name
    group: str = ""
    dataset: Name
    metrics: dict[str, Printed]
    units: dict[str, str] = Field(default_factory=dict)
    std_over: StdOver | None = None
    conditions: dict[str, Scalar] = Field(default_factory=dict)
    hardware: str | None = None
    notes: tuple[str, ...] = ()
    run: BoundRun | None = None  # instead of the row's, for this data set alone

    @property
    def row(self) -> str:
        return make_row_key(self.group, self.model)

    @property
    def values(self) -> dict[str, Quantity]:
        """The metrics without their deviations."""
        return {name: value for name, value in self.metrics.items() if not self._is_std(name)}

    @property
    def stds(self) -> dict[str, Quantity]:
        return {name.removesuffix("_std"): value for name, value in self.metrics.items() if self._is_std(name)}

    def _is_std(self, name: str) -> bool:
        return name.endswith("_std") and name.removesuffix("_std") in self.metrics

    @model_validator(mode="after")
    def _deviations_have_values(self) -> Self:
        for name in self.metrics:
            if name.endswith("_std") and not self._is_std(name):
                raise ConfigError(f"The metric '{name.removesuffix('_std')}' has a deviation but no value.")
        for name, std in self.stds.items():
            if std.value < 0:
                raise ConfigError(f"The deviation '{name}_std' must not be negative. Got {std.printed} instead.")
        if not self.metrics:
            raise ConfigError(f"The result of '{self.model}' on '{self.dataset}' has no metric.")
        return self


class PaperTable(PlacedModel):
    """A table of the paper. One without results has not been transcribed yet."""

    id: Name
    title: str = ""
    description: str = ""
    primary_metric: str | None = None
    lower_is_better: bool | None = None  # of the primary metric, where the program does not know it
    directions: dict[str, Literal["lower", "higher"]] = Field(default_factory=dict)  # of the other metrics
    datasets: tuple[PaperDataset, ...] = ()
    models: tuple[PaperRow, ...] = ()
    results: tuple[PaperResult, ...] = ()
    # Absolute by metric; `<metric>_relative` is a fraction.
    tolerance: dict[str, Annotated[float, Ge(0)]] = Field(default_factory=dict)
    our_units: dict[str, str] = Field(default_factory=dict)  # of our values, where they differ from the paper's
    std_over: StdOver | None = None
    hardware: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def row_keys(self) -> tuple[str, ...]:
        """All rows, those that are only in the results included."""
        return tuple(dict.fromkeys([*(row.key for row in self.models), *(result.row for result in self.results)]))

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """All data sets, those that are only in the results included."""
        return tuple(dict.fromkeys([*(d.name for d in self.datasets), *(result.dataset for result in self.results)]))

    def row(self, key: str) -> PaperRow | None:
        """The declaration of a row, by its key. A name alone could be that of a row in another group."""
        return next((row for row in self.models if row.key == key), None)

    def result(self, row: str, dataset: str) -> PaperResult | None:
        """What the paper prints for a row, by its key, on a data set."""
        return next((found for found in self.results if (found.row, found.dataset) == (row, dataset)), None)

    def dataset(self, name: str) -> PaperDataset:
        """The declaration of a data set; one that only results name is declared by its name alone."""
        return next((found for found in self.datasets if found.name == name), PaperDataset(name=name))


class DeclaredTarget(PlacedModel):
    """Rows to be reproduced. Without data sets, on all that the paper reports for them."""

    table: Name
    rows: tuple[Name, ...] = ()
    datasets: tuple[Name, ...] = ()


class Targets(PlacedModel):
    """What is to be reproduced. The primary ones decide the exit code."""

    primary: tuple[DeclaredTarget, ...] = ()
    secondary: tuple[DeclaredTarget, ...] = ()


class PaperConditions(PlacedModel):
    """What the paper says about how its numbers came about."""

    hardware: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    seeds: Annotated[int, Ge(1)] | None = None
    notes: tuple[str, ...] = ()


class PaperSpecification(PlacedModel):
    """The content of `benchmarks.yaml`."""

    schema_version: Literal[1] = SCHEMA_VERSION
    paper: Name
    arxiv_id: str | None = None
    source: str = ""  # where the numbers were taken from
    conditions: PaperConditions = PaperConditions()
    seeds: Annotated[int, Ge(1)] = 5  # how often a target is repeated here
    tables: tuple[PaperTable, ...]
    reproduction_targets: Targets = Targets()

    @model_validator(mode="before")
    @classmethod
    def _version_is_known(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if isinstance(data.get("kind"), str):
            raise locate_error(data, ("kind",), f"This is a '{data['kind']}' file, not a specification.")
        version = data.get("schema_version", SCHEMA_VERSION)
        if isinstance(version, bool) or version != SCHEMA_VERSION:
            raise locate_error(data, ("schema_version",), f"This is a specification {describe_format(version)}.")
        return data

    def table(self, table_id: str) -> PaperTable | None:
        return next((table for table in self.tables if table.id == table_id), None)


def make_row_key(group: str, name: str) -> str:
    """The key of a row: its name, after its group where it has one."""
    return f"{group} / {name}" if group else name


def make_target_name(table: str, row: str, dataset: str) -> str:
    """TABLE:ROW:DATASET, or as much of it as there is."""
    return f"{table}:{row}:{dataset}".rstrip(":")


def read_specification(path: Path) -> PaperSpecification:
    """A specification file. Any mistake is one sentence with the file, the line and the nearest valid name."""
    data = parse_yaml(read_text(path), str(path))
    found = PaperSpecification.model_validate(data)
    for fault, where in _find_faults(found):
        raise locate_error(data, where, fault)
    return found


def digest_specification(path: Path) -> str:
    return compute_digest(read_text(path))


_Place = tuple[str | int, ...]  # the path to what is wrong


def _find_faults(spec: PaperSpecification) -> Iterator[tuple[str, _Place]]:
    """Names that lead nowhere or are there twice."""
    yield from _find_doubled("table id", [table.id for table in spec.tables], ("tables",))
    for i, table in enumerate(spec.tables):
        at = ("tables", i)
        rows, datasets = [row.key for row in table.models], [dataset.name for dataset in table.datasets]
        yield from _find_doubled("name of models", rows, (*at, "models"))
        yield from _find_doubled("name of datasets", datasets, (*at, "datasets"))
        known_rows, known_datasets, seen = set(rows), set(datasets), set()
        for j, result in enumerate(table.results):
            here = (*at, "results", j)
            if rows and result.row not in known_rows:
                yield _unknown(table, "row", result.row, rows), (*here, "model")
            if datasets and result.dataset not in known_datasets:
                yield _unknown(table, "data set", result.dataset, datasets), (*here, "dataset")
            if (result.row, result.dataset) in seen:
                yield f"'{table.id}' has two results of '{result.row}' on '{result.dataset}'.", here
            seen.add((result.row, result.dataset))
        if table.results:
            yield from _find_metric_faults(table, at)
    for kind in ("primary", "secondary"):
        for i, target in enumerate(getattr(spec.reproduction_targets, kind)):
            yield from _find_target_faults(spec, target, ("reproduction_targets", kind, i))


def _find_metric_faults(table: PaperTable, at: _Place) -> Iterator[tuple[str, _Place]]:
    known = {name for result in table.results for name in result.values}
    named = [("tolerance", name) for name in table.tolerance if name.removesuffix("_relative") not in known]
    named += [("directions", name) for name in table.directions]
    named += [("our_units", name) for name in table.our_units]
    for key, name in named:
        if name not in known:
            yield _unknown(table, "metric", name, known), (*at, key, name)
    for i, result in enumerate(table.results):
        for name in result.units:
            if name not in result.values:
                sentence = f"The result has no metric '{name}'.{suggest(name, result.values)}"
                yield sentence, (*at, "results", i, "units", name)
    main = table.primary_metric
    if main and table.lower_is_better is not None and main not in known:
        yield _unknown(table, "metric", main, known), (*at, "primary_metric")


def _find_target_faults(spec: PaperSpecification, target: DeclaredTarget, at: _Place) -> Iterator[tuple[str, _Place]]:
    table = spec.table(target.table)
    if table is None:
        hint = suggest(target.table, [table.id for table in spec.tables])
        yield f"A target names the table '{target.table}', which is not there.{hint}", (*at, "table")
        return
    if not table.row_keys:  # not transcribed yet: its targets are reported as missing
        return
    names = {*table.row_keys, *(row.name for row in table.models), *(result.model for result in table.results)}
    for i, row in enumerate(target.rows):
        if row not in names:
            yield _unknown(table, "row", row, table.row_keys), (*at, "rows", i)
    for i, dataset in enumerate(target.datasets):
        if dataset not in table.dataset_names:
            yield _unknown(table, "data set", dataset, table.dataset_names), (*at, "datasets", i)


def _unknown(table: PaperTable, kind: str, name: str, known: Iterable[str]) -> str:
    return f"'{table.id}' has no {kind} '{name}'.{suggest(name, known)}"


def _find_doubled(kind: str, names: Iterable[str], at: _Place) -> Iterator[tuple[str, _Place]]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield f"The {kind} '{name}' is there twice.", (*at, i)
        seen.add(name)
