"""What a specification asks to reproduce, target by target, and what stands in the way here. It imports no science."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from boosters_eval.core.errors import BoostersEvalError, ConfigError, suggest
from boosters_eval.core.terms import given, named, the
from boosters_eval.core.text import count_of
from boosters_eval.datasets.catalog import DATASETS
from boosters_eval.datasets.resolve import SUFFIXES
from boosters_eval.metrics import RESOURCES, for_task
from boosters_eval.programs.benchmark.paper_protocol import STOPPING_METRIC
from boosters_eval.programs.benchmark.preprocessing import STEPS
from boosters_eval.programs.paper.lm import find_missing
from boosters_eval.programs.paper.specification import (
    BINDINGS,
    Binding,
    CallableRun,
    CommandRun,
    DeclaredTarget,
    EstimatorRun,
    EvaluatorRun,
    LibraryRun,
    ModelRun,
    PaperDataset,
    PaperResult,
    PaperSpecification,
    PaperTable,
    make_target_name,
    read_specification,
)
from boosters_eval.programs.paper.tolerances import canonicalize, is_share
from boosters_eval.reports.document import Document, Paragraph, PlainTable, Section
from boosters_eval.reports.findings import ReportedFindings
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.reference import parse_reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.metrics.task import Task
    from boosters_eval.programs.paper.request import ListPaperRequest


_EMPTY = (
    "It has no targets yet. Name what to reproduce under 'reproduction_targets', such as primary: [{table: Table 1}]."
)
_FORMATS = {
    **dict.fromkeys((".json", ".ubj", ".xgb"), "xgboost"),
    **dict.fromkeys((".txt", ".lgb"), "lightgbm"),
    ".cbm": "catboost",
    ".bstr": "boosters",
    ".onnx": "onnx",
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "pickle"),
}


@dataclass(frozen=True)
class PaperTarget:
    """One row of a table on one data set, and what runs it."""

    table: PaperTable
    row: str  # its key
    dataset: PaperDataset | None  # None: the table names none
    primary: bool
    root: Path  # the specification's folder
    binding: Binding | None = None
    model: str | None = None  # of the user; it replaces the binding's own

    @property
    def name(self) -> str:
        return make_target_name(self.table.id, self.row, self.dataset_name)

    @property
    def dataset_name(self) -> str:
        return "" if self.dataset is None else self.dataset.name

    @property
    def result(self) -> PaperResult | None:
        return self.table.result(self.row, self.dataset_name)

    def locate_model(self) -> Path:
        """The saved model. One from the specification may not lead out of its folder, through a link either."""
        if self.model is not None:
            return Path(self.model)
        path = self.root / str(getattr(self.binding, "model", None) or "")
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise ConfigError(
                f"The model '{path}' leads out of the specification's folder: give it with {named('model')}."
            )
        return path

    def find_model(self) -> str:
        """The model as an evaluator takes it: a path that is there, or a name on the hub."""
        path = self.locate_model()
        if path.exists():
            return str(path.resolve())
        return self.model or str(getattr(self.binding, "model", None) or "")


def find_targets(spec: PaperSpecification, root: Path, model: Path | str | None = None) -> tuple[PaperTarget, ...]:
    """All targets, the primary ones first; a target that is named twice counts once."""
    ours = None if model is None else str(model)
    declared = spec.reproduction_targets
    found: dict[str, PaperTarget] = {}
    for primary in (True, False):
        for declaration in declared.primary if primary else declared.secondary:
            for target in _expand(spec, declaration, root, ours, primary=primary):
                same = found.setdefault(target.name, target)
                if (same.table.id, same.row) != (target.table.id, target.row) or same.dataset != target.dataset:
                    raise ConfigError(
                        f"Two targets would both be called '{target.name}': rename a row or a data set that has a"
                        " colon."
                    )
    return tuple(found.values())


def _expand(
    spec: PaperSpecification, declared: DeclaredTarget, root: Path, model: str | None, *, primary: bool
) -> Iterator[PaperTarget]:
    table = spec.table(declared.table)
    if table is None:
        raise ConfigError(f"A target names the table '{declared.table}', which is not there.")
    marked = any(row.is_ours for row in table.models)
    for name in declared.rows or table.row_keys or ("",):  # a table without any row is a target that cannot run
        for key in [key for key in table.row_keys if name in _row_names(table, key)] or [name]:
            row = table.row(key)
            # The user's model is ours: it stands for the rows that are ours, or for all where none is marked.
            ours = model if row is not None and (row.is_ours or not marked) else None
            reported = [result.dataset for result in table.results if result.row == key]
            datasets = declared.datasets or reported or [dataset.name for dataset in table.datasets]
            for dataset in datasets or ("",):
                result = table.result(key, dataset)
                binding = (result.run if result else None) or (row.run if row else None)
                if binding is None and ours is not None:
                    binding = ModelRun.model_construct(model=Path(ours).name)
                yield PaperTarget(table, key, table.dataset(dataset) if dataset else None, primary, root, binding, ours)


def _row_names(table: PaperTable, key: str) -> set[str]:
    """The names that mean a row: its key, and its name without the group."""
    declared = {row.name for row in table.models if row.key == key}
    return {key, *declared, *(result.model for result in table.results if result.row == key)}


def select_targets(targets: Sequence[PaperTarget], only: Sequence[str]) -> tuple[PaperTarget, ...]:
    """The targets that `only` names, by table, row and data set, or by the first of them."""
    for text in only:
        if not any(text in _names(target) for target in targets):
            known = [name for target in targets for name in sorted(_names(target))]
            raise ConfigError(
                f"{the('only')} must name a target as TABLE, TABLE:ROW or TABLE:ROW:DATASET."
                f" Got '{text}' instead.{suggest(text, known)}"
            )
    return tuple(target for target in targets if is_selected(target, only))


def is_selected(target: PaperTarget, only: Sequence[str]) -> bool:
    return not only or bool(_names(target) & set(only))


def _names(target: PaperTarget) -> set[str]:
    heads = {f"{target.table.id}:{row}" for row in _row_names(target.table, target.row)}
    return {target.table.id, *heads, *(f"{head}:{target.dataset_name}" for head in heads)}


def find_obstacle(target: PaperTarget, *, allow_pickle: bool = False) -> str | None:
    """Why a target cannot run here, in a sentence, or None. Nothing is imported, opened or started for it."""
    if target.dataset is None or target.result is None:
        where = f" on '{target.dataset_name}'" if target.dataset else ""
        return f"The specification has no result of '{target.row}'{where} in '{target.table.id}' to compare with."
    found: str | None = f"Nothing is bound to this row: give it a 'run', or its model with {named('model')}."
    try:
        match target.binding:
            case LibraryRun() as run:
                found = _library_obstacle(run) or _data_obstacle(target, run.preprocessing)
            case ModelRun() as run:
                found = _model_obstacle(target, run, allow_pickle=allow_pickle)
                found = found or _data_obstacle(target, run.preprocessing)
            case CallableRun() as run:
                found = _module_obstacle(target, run.callable)
            case EstimatorRun() as run:
                found = _module_obstacle(target, run.estimator) or _data_obstacle(target, run.preprocessing)
            case CommandRun(command=(program, *_)):
                there = (target.root / program).is_file() if "/" in program else shutil.which(program)
                found = None if there else f"The program '{program}' is not there."
            case EvaluatorRun() as run:
                model = target.find_model()
                found = f"The evaluator '{run.evaluator}' needs a model: give it with {named('model')}."
                if model:
                    found = find_missing(
                        run.evaluator, model, target.dataset, root=target.root, allow_pickle=allow_pickle
                    )
    except BoostersEvalError as error:
        found = str(error)
    return found


def _library_obstacle(run: LibraryRun) -> str | None:
    if run.display_name not in RUNNERS:
        return f"There is no library '{run.display_name}' here.{suggest(run.display_name, RUNNERS)}"
    if run.has_version:
        parse_reference(run.library)  # refuses a version that is not exact; it is installed when the target runs
    missing = None if run.has_version else RUNNERS[run.library].missing()
    if missing is not None:
        return f"The library '{run.library}' is unavailable: {missing}."
    if run.early_stopping and run.early_stopping.metric and run.display_name not in STOPPING_METRIC:
        return f"The library '{run.library}' does not stop early on a metric of choice."
    return None


def _model_obstacle(target: PaperTarget, run: ModelRun, *, allow_pickle: bool) -> str | None:
    path = target.locate_model()
    if not path.is_file():
        return f"The model {path} does not exist."
    form = find_format(run, path)
    if form == "pickle" and not allow_pickle:
        allowed = given("allow_pickle")
        return f"The model {path} is a pickle, which can run any code when it is opened: pass {allowed}."
    if form == "onnx" and find_spec("onnxruntime") is None:
        return "An ONNX model needs onnxruntime: pip install onnxruntime."
    missing = RUNNERS[form].missing() if form in RUNNERS else None
    return f"The library '{form}' is unavailable: {missing}." if missing else None


def _module_obstacle(target: PaperTarget, address: str) -> str | None:
    module = address.partition(":")[0]
    missing = f"There is no module '{module}' in {target.root} or among the installed ones."
    return None if locate_module(module, target.root) else missing


def find_format(run: ModelRun, path: Path) -> str:
    """The format of a saved model: what the specification says, or what the suffix means."""
    found = run.format or _FORMATS.get(path.suffix.lower())
    if found is None:
        known = ", ".join(dict.fromkeys(_FORMATS.values()))
        raise ConfigError(
            f"The format of the model {path} is unknown: name it by 'format' ({known}), "
            "or bind the row to an 'evaluator', a 'callable' or a 'command' that can open it."
        )
    return found


def _data_obstacle(target: PaperTarget, steps: tuple[str, ...]) -> str | None:
    unknown = next((name for name in steps if name not in STEPS), None)
    if unknown is not None:
        return f"There is no preprocessing step '{unknown}'.{suggest(unknown, STEPS)} Known: {', '.join(STEPS)}."
    text = locate_data(target)
    file = text.rpartition(":")[0]
    if file.endswith(SUFFIXES):
        return None if Path(file).is_file() else f"The data file {file} does not exist."
    if text not in DATASETS:
        return f"There is no data set '{text}' here: name one by 'use'.{suggest(text, DATASETS)}"
    config = DATASETS[text]
    match_metrics(target, config.task)
    return config.available() if config.available is not None else None


def locate_data(target: PaperTarget) -> str:
    """The name of a registered data set, or a file of the specification's folder with its target column."""
    dataset = target.dataset
    if dataset is None or dataset.use is None:
        return target.dataset_name.lower().replace(" ", "_")
    file, colon, column = dataset.use.rpartition(":")
    if not colon:
        return dataset.use
    path = target.root / file
    if not path.resolve().is_relative_to(target.root.resolve()):
        raise ConfigError(f"The data file '{path}' leads out of the specification's folder.")
    return f"{path}:{column}"


def match_metrics(target: PaperTarget, task: Task) -> dict[str, str]:
    """The paper's metrics that this program computes, with our name for each; at least one is needed."""
    found: dict[str, str] = {}
    sentence = "The paper reports no metric."
    for name in target.result.values if target.result else ():
        plain = name.strip().lower().replace(" ", "_").replace("-", "_")
        plain = canonicalize(name) if is_share(name) else plain  # in percent or not: the values tell
        if plain in RESOURCES:
            found[name] = plain
            continue
        try:
            found[name] = for_task(plain, task).spec
        except ConfigError as error:
            sentence = str(error)
    if not found:
        raise ConfigError(sentence)
    return found


def locate_module(name: str, root: Path) -> Path | None:
    """The file of a module, first in the specification's folder, without importing it or a package around it."""
    where = [str(root.resolve()), *sys.path]  # Python remembers what "." was
    spec = None
    for end in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:end])
        spec = PathFinder.find_spec(part, where) or (find_spec(part) if end == 1 else None)
        if spec is None:
            return None
        where = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec and spec.origin else None


def list_targets(request: ListPaperRequest) -> ListedTargets:
    """The targets of the specifications that were named, or of those that are here."""
    named = [(file, read_specification(file)) for file in request.files] or _find_specifications()
    found = []
    for file, spec in named:
        for target in find_targets(spec, file.parent, request.model):
            reason = find_obstacle(target, allow_pickle=request.allow_pickle)
            found.append(
                ListedTarget(
                    specification=str(file),
                    paper=spec.paper,
                    kind="primary" if target.primary else "secondary",
                    table=target.table.id,
                    row=target.row,
                    dataset=target.dataset_name,
                    runs_by=_describe_binding(target.binding),
                    runnable=reason is None,
                    reason=reason or "",
                )
            )
    return ListedTargets(tuple(found), {str(file): spec.paper for file, spec in named})


def _describe_binding(binding: Binding | None) -> str:
    for key, kind in BINDINGS.items():
        if isinstance(binding, kind):
            value = getattr(binding, key)
            return f"{key} {value[0] if key == 'command' else value}"
    return ""


def _find_specifications() -> list[tuple[Path, PaperSpecification]]:
    """Files that look like a specification: other YAML files are passed over without a word."""
    found = []
    for folder in (Path("examples/papers"), Path()):
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            with suppress(BoostersEvalError):
                found.append((path, read_specification(path)))
    return found


@dataclass(frozen=True)
class ListedTarget:
    """One row of a table on one data set."""

    specification: str
    paper: str
    kind: Literal["primary", "secondary"]
    table: str
    row: str
    dataset: str
    runs_by: str  # a library, a function, ...; '' if nothing is bound to it
    runnable: bool
    reason: str  # why it cannot run here


@dataclass(frozen=True)
class ListedTargets(ReportedFindings):
    """All targets, as a table per specification or as data."""

    plain: ClassVar[bool] = True
    targets: tuple[ListedTarget, ...]
    specifications: dict[str, str]  # the paper of each file

    def document(self) -> Document:
        headings = ("table", "row", "data set", "kind", "runs by", "can run", "reason")
        sections = []
        for i, (file, paper) in enumerate(self.specifications.items()):
            rows = tuple(
                (it.table, it.row or "-", it.dataset or "-", it.kind, it.runs_by or "-")
                + (("yes", "-") if it.runnable else ("no", it.reason))
                for it in self.targets
                if it.specification == file
            )
            table = PlainTable(file, headings, rows, keys=3)
            sections.append(Section(f"specification-{i}", f"{file}: {paper}", (table if rows else Paragraph(_EMPTY),)))
        count = sum(target.runnable for target in self.targets)
        answer = f"{count} of {count_of(len(self.targets), 'target')} can run here." if self.targets else ""
        return Document("Targets", (answer,) if answer else (), sections=tuple(sections))

    def to_model(self) -> list[dict[str, Any]]:
        names = {"dataset": "data set", "runs_by": "runs by"}
        return [{names.get(name, name): value for name, value in asdict(target).items()} for target in self.targets]

    def show(self, screen: Screen) -> None:
        if self.specifications:
            super().show(screen)
        else:
            screen.note("Note: there is no specification here. Name one, or write one with 'paper extract'.")
