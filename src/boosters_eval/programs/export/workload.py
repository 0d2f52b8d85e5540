"""The workloads of `check-export`: lay out the rows and ask the model itself, and ask an export about the same rows."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from boosters_eval.core.distributions import installed_version
from boosters_eval.core.files import compute_digest, dump_canonical
from boosters_eval.core.text import clean
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.cell import Build, CellOutcome, Outcome, Spec, Target
from boosters_eval.engine.workload import Workload
from boosters_eval.programs.export.runtimes import RUNTIMES, open_export
from boosters_eval.programs.export.saved import TEXTS, ExportError, ModelKind, list_names, open_saved
from boosters_eval.programs.parity.probes import INPUT_PROBES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from boosters_eval.engine.cell import Cell
    from boosters_eval.programs.export.saved import ExportRows, OpenedModel, PredictRows

PARTS = ("sample", "on a threshold", "missing", "infinite", "unseen category")
SAMPLE, THRESHOLD, MISSING, INFINITE, UNSEEN = range(len(PARTS))
MOST_ROWS, MOST_THRESHOLDS = 20_000, 20_000
_EACH = 3  # rows of the sample in which a value is put, for each column
_LONGEST = 300  # of a reason
ITSELF = "itself"
_STAMP = re.compile(r"^\[[\d:]+\] |\S*/\S+\.(?:cc|cpp|h|hpp):\d+: |Check failed: [^:]*: ")


class ExportSpec(Spec):
    """What is asked, of whom; where its files are is not part of it: only their content is."""

    workload: Literal["export"] = "export"
    model: str  # the digests of the files
    sample: str
    ending: str
    export: str = ""  # of one's own: as it was named, and its digest
    content: str = ""
    rows: str = ""  # digest of the rows; empty: they are laid out
    texts: dict[int, tuple[str, ...]] = {}  # noqa: RUF012 (a model copies it)


class ExportOutcome(CellOutcome):
    """The predictions for all rows, and which rows were refused. Of the model itself, all that they are judged by."""

    predictions: str  # digest
    refused: tuple[tuple[int, int, str], ...] = ()  # part, column, reason
    rows: str = ""
    places: str = ""  # digest: of each row its part, its column, and its threshold
    mistakes: dict[str, tuple[str, str]] = {}  # noqa: RUF012 (a model copies it)
    library: str = ""
    kind: ModelKind = "regression"
    columns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    thresholds: int = 0
    texts: dict[int, tuple[str, ...]] = {}  # noqa: RUF012 (a model copies it)
    notes: tuple[str, ...] = ()

    @property
    def digests(self) -> tuple[str, ...]:
        found = (self.predictions, self.rows, self.places, *(digest for _, digest in self.mistakes.values()))
        return tuple(filter(None, found))


class ExportWorkload(Workload):
    """The workload whose targets are the model itself, the runtimes, and exports of the user's own."""

    name: ClassVar[str] = "export"
    spec_type: ClassVar[type[Spec]] = ExportSpec
    outcome_type: ClassVar[type[Outcome]] = ExportOutcome

    @classmethod
    def target(cls, name: str) -> Target:
        """A runtime, with the versions of all that may take part: a result is kept as long as they are the same."""
        version = RUNTIMES[name].version if name in RUNTIMES else ""
        every = {need for one in RUNTIMES.values() for need in one.needs} | {"scikit-learn", "catboost", "boosters"}
        installed = {need: [installed_version(one) for one in need.split("|")] for need in every}
        return Target(name=name, build=Build(version=version, digest=compute_digest(dump_canonical(installed), 16)))

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:
        del target
        return (__name__,)

    @classmethod
    def bound_here(cls, cell: Cell, inputs: Mapping[str, str]) -> str | None:  # noqa: ARG003 (all are alike)
        return f"it reads {inputs['model']} of this machine"

    @classmethod
    def run(cls, cell: Cell, loaded: None, inputs: Mapping[str, str], phase: Callable[[str], None]) -> ExportOutcome:  # noqa: ARG003
        spec = cell.spec
        if not isinstance(spec, ExportSpec):
            raise TypeError(f"{cell} is not a cell of the workload 'export'.")
        phase("load")
        path, arrays = Path(inputs["model"]), Path(inputs["artifacts"])
        if not spec.rows:
            return _ask_itself(cell, open_saved(path), Path(inputs["sample"]), arrays, phase)
        x, places = np.load(inputs["rows"]), np.load(inputs["places"])
        TEXTS.update(spec.texts)
        if spec.export:
            os.chdir(inputs["root"])  # as where the command is given: a function may open files by their names
            predict = open_export(inputs["export"])
        else:
            phase("export")
            predict = RUNTIMES[cell.target.name].carry(open_saved(path), path)
        phase("predict")
        predictions, refused = ask_parts(predict, x, places)
        phase("done")
        return ExportOutcome.of(cell, predictions=save_array(arrays, predictions), refused=refused)


def _ask_itself(
    cell: Cell, saved: OpenedModel, sample: Path, arrays: Path, phase: Callable[[str], None]
) -> ExportOutcome:
    phase("rows")
    rows, notes = read_sample(saved, sample)
    x, places, thresholds = lay_out_rows(saved, rows)
    if thresholds > MOST_THRESHOLDS:
        notes.append(f"Of {thresholds} thresholds, {MOST_THRESHOLDS} are asked about.")
    if not thresholds:
        notes.append("The model has no thresholds of columns: it is asked about the sample and about special values.")
    phase("predict")
    predictions, refused = ask_parts(saved.predict, x, places)
    for part, column, _ in refused:
        kept = ~_select(places, part, column)
        x, places, predictions = (array[kept] for array in (x, places, predictions))
    for part, reason in dict.fromkeys((part, reason) for part, _, reason in refused):
        columns = [_name(saved, at) for one, at, why in refused if (one, why) == (part, reason)]
        where = "" if len(columns) == saved.width else f" in {list_names(columns)}"
        notes.append(f"Not asked about, because the model itself refuses it: {PARTS[part]}{where} ({reason}).")
    phase("mistakes")
    mistakes = {
        name: (sentence, save_array(arrays, found))
        for name, sentence, found in _list_mistakes(saved, x)
        if found.shape == predictions.shape and not np.array_equal(found, predictions, equal_nan=True)
    }
    phase("done")
    return ExportOutcome.of(
        cell,
        predictions=save_array(arrays, predictions),
        rows=save_array(arrays, x),
        places=save_array(arrays, places),
        mistakes=mistakes,
        library=saved.library,
        kind=saved.kind,
        columns=tuple(_name(saved, column) for column in range(saved.width)),
        classes=saved.classes,
        thresholds=thresholds,
        texts={column: tuple(texts) for column, texts in TEXTS.items()},
        notes=tuple(notes),
    )


def _name(saved: OpenedModel, column: int) -> str:
    return saved.names[column] if saved.names else str(column)


def _list_mistakes(saved: OpenedModel, x: ExportRows) -> Iterator[tuple[str, str, NDArray[np.float64]]]:
    """What the model predicts with the mistakes of exporters: in the model, then in the rows."""
    for name, (sentence, predict) in saved.mistakes.items():
        try:
            yield name, sentence, _check(predict(x), len(x))
        except Exception:  # noqa: BLE001, S112 (what it is asked for may be nonsense to it)
            continue
    fixed = list(saved.categorical)
    for name, (sentence, change) in INPUT_PROBES.items():
        with np.errstate(all="ignore"):
            changed = np.ascontiguousarray(change(x))
        changed[:, fixed] = x[:, fixed]
        try:
            yield name, sentence, _check(saved.predict(changed), len(x))
        except Exception:  # noqa: BLE001, S112 (a library may refuse what a mistake makes of the rows)
            continue


# ---- The rows


def read_sample(saved: OpenedModel, path: Path) -> tuple[ExportRows, list[str]]:
    """The columns of the model, by their names where the file has them all, else by their places; texts as codes."""
    import pandas as pd  # noqa: PLC0415 (only where a sample is read)

    notes: list[str] = []
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, nrows=MOST_ROWS)
    if all(_is_number(str(name)) for name in frame.columns):  # there is no header
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, nrows=MOST_ROWS, header=None)
    header = [str(name) for name in frame.columns]
    if saved.names and set(saved.names) <= set(header):
        left = [name for name in header if name not in saved.names]
        if left:
            notes.append(f"Columns that the model has not are left out: {list_names(left)}.")
        frame = frame[list(saved.names)]
    elif len(header) != saved.width:
        lost = [name for name in saved.names if name not in header]
        told = f" It lacks {list_names(lost)}." if lost and len(lost) < len(saved.names) else ""
        raise ExportError(
            f"{path.name} must have the {saved.width} columns of the model. Got {len(header)} instead.{told}"
        )
    if not len(frame):
        raise ExportError(f"{path.name} has no rows.")
    if len(frame) == MOST_ROWS:
        notes.append(f"At most {MOST_ROWS} rows of the sample are asked about.")
    x = np.empty((len(frame), saved.width))
    for place in range(saved.width):
        x[:, place] = _read_column(saved, place, [str(value).strip() for value in frame.iloc[:, place]], path.name)
    return x, notes


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_column(saved: OpenedModel, place: int, texts: list[str], source: str) -> NDArray[np.float64]:
    empty = ("", "nan", "NaN", "NA", "null", "None")
    if all(text in empty or _is_number(text) for text in texts) and not (
        place in saved.categorical and len(saved.codes) == len(saved.categorical)
    ):
        return np.array([np.nan if text in empty else float(text) for text in texts])
    if place in saved.categorical and len(saved.codes) == len(saved.categorical):
        codes = {text: float(code) for code, text in enumerate(saved.codes[saved.categorical.index(place)])}
        return np.array([codes.get(text, np.nan) for text in texts])
    if place not in saved.categorical or saved.library != "catboost":
        raise ExportError(f"{source} must have numbers in the column {_name(saved, place)}. Write categories as codes.")
    known = list(dict.fromkeys(texts))
    TEXTS[place] = known
    return np.array([float(known.index(text)) for text in texts])


def lay_out_rows(saved: OpenedModel, sample: ExportRows) -> tuple[ExportRows, NDArray[np.float64], int]:
    """The sample; a row on each threshold, and one step below and above; and special values, column by column.

    Of each row, its part, its column, its threshold, and the step from that. A row on a threshold comes to it: the
    values that would lead it elsewhere are moved.
    """
    rows: list[NDArray[np.float64]] = list(sample)
    places: list[tuple[float, float, float, float]] = [(SAMPLE, -1, np.nan, 0)] * len(sample)
    splits = list(saved.splits())
    chosen = splits if len(splits) <= MOST_THRESHOLDS else splits[:: -(-len(splits) // MOST_THRESHOLDS)]
    kind = np.float32 if saved.single else np.float64
    for at, split in enumerate(chosen):
        row = sample[at % len(sample)].copy()
        for column, (low, high) in split.bounds.items():
            if not low < row[column] < high and column not in saved.categorical:
                row[column] = kind(_between(low, high))
        on = kind(split.threshold)
        for step in (-1, 0, 1):
            beside = row.copy()
            beside[split.column] = np.nextafter(on, kind(step * np.inf)) if step else on
            rows.append(beside)
            places.append((THRESHOLD, split.column, split.threshold, step))
    for column in range(saved.width):
        special = [(MISSING, np.nan), (INFINITE, np.inf), (INFINITE, -np.inf)]
        if column in saved.categorical:
            known = sample[:, column][np.isfinite(sample[:, column])]
            most = max([*known, *(len(codes) - 1 for codes in saved.codes)], default=0)
            special = [(MISSING, np.nan), (UNSEEN, most + 1)]
        for part, value in special:
            for row in sample[:_EACH]:
                rows.append(row.copy())
                rows[-1][column] = value
                places.append((part, column, np.nan, 0))
    x = np.array(rows)
    x[np.abs(x) <= saved.zero] = 0.0  # as the library takes them, so that no runtime is blamed for it
    return x, np.array(places), len(splits)


def _between(low: float, high: float) -> float:
    """A number between two, of which one may be infinite."""
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) / 2
    if np.isfinite(high):
        return high - max(1.0, abs(high) / 2)
    return low + max(1.0, abs(low) / 2) if np.isfinite(low) else 0.0


# ---- Predictions


def _select(places: NDArray[np.float64], part: int, column: int) -> NDArray[np.bool_]:
    return np.asarray((places[:, 0] == part) & (places[:, 1] == column))


def ask_parts(
    predict: PredictRows, x: ExportRows, places: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[tuple[int, int, str], ...]]:
    """All at once; if that is refused, special values column by column, so that one that is refused costs no other."""
    try:
        return _check(predict(x.copy()), len(x)), ()
    except Exception:  # noqa: BLE001 (what is refused is found out below)
        usual = places[:, 0] <= THRESHOLD
    first = _check(predict(x[usual]), int(usual.sum()))
    found = np.full((len(x), *first.shape[1:]), np.nan)
    found[usual] = first
    refused = []
    for part, column in dict.fromkeys((int(one[0]), int(one[1])) for one in places[~usual]):
        here = _select(places, part, column)
        try:
            found[here] = _check(predict(x[here]), int(here.sum()))
        except Exception as error:  # noqa: BLE001 (whatever it says is told)
            refused.append((part, column, tell_error(error)))
    return found, tuple(refused)


def tell_error(error: BaseException | str) -> str:
    """The first line of what a library says, without the time and the place in its code."""
    first = next(iter(str(error).strip().splitlines()), "it says nothing")
    return clean(_STAMP.sub("", first))[:_LONGEST].rstrip(". ")


def _check(answer: Any, count: int) -> NDArray[np.float64]:
    """A number for each row, or one for each class; of two classes, the second."""
    array = np.asarray(answer)
    if array.dtype.kind not in "fiub" or array.ndim == 0 or len(array) != count:
        raise ExportError(
            f"A prediction must be a number for each of {count} rows. Got {array.dtype} of shape {array.shape} instead."
        )
    array = array.astype(np.float64).reshape(count, -1)
    return array[:, 0] if array.shape[1] == 1 else array
