"""What a difference looks like: which known fault turns the reference into the prediction. Pure, from stored arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boosters_eval.core.text import count_of, join_words
from boosters_eval.reports.numbers import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Prediction = NDArray[np.float64]
    RowIndices = NDArray[np.intp]

LAST_BITS = 4  # units in the last place: what rounding once or twice leaves
SUMMATION = 1e-12  # of the scale: what adding up in another order leaves
SINGLE = 2e-6  # of the scale: what computing in single precision leaves
_LISTED = 5  # rows that are named one by one
_ENOUGH = 5  # rows on each side: less would be separated by some column by chance


class Diagnosis(NamedTuple):
    """The name of a fault, for tables and tests, and what is said of it."""

    name: str
    sentence: str


class CellEvidence(NamedTuple):
    """What a diagnosis may look at besides the two predictions, as far as it is there."""

    allowed: float  # the gap that the tolerance allows
    x: Prediction | None = None  # the input
    marked: NDArray[np.bool_] | None = None  # rows that were made to sit on a threshold
    others: Sequence[Prediction] = ()  # what the reference predicts for other data
    variants: Mapping[str, tuple[str, Prediction]] = {}  # what it predicts otherwise, with the sentence of each
    repeatable: bool | None = None


UNEXPLAINED = "unexplained"


def diagnose(reference: Prediction, prediction: Prediction, evidence: CellEvidence) -> Diagnosis:
    """The first fault that explains all of the difference; else where it is; else that nothing fits."""
    for look in (_look_at_order, _look_at_variants, _look_at_values, _look_at_precision, _look_at_rows):
        found = next(look(reference, prediction, evidence), None)
        if found is not None:
            return found
    if evidence.repeatable is False:
        return Diagnosis("not_repeatable", "a second run on the same data gave other bits")
    return Diagnosis(UNEXPLAINED, f"{UNEXPLAINED}: {_count_off(reference, prediction, evidence)}")


def describe_agreement(reference: Prediction, prediction: Prediction) -> Diagnosis | None:
    """What is left between predictions that agree; None where no number differs."""
    gaps = np.abs(prediction - reference)
    if not gaps.any():
        return None
    units = gaps / np.spacing(np.maximum(np.abs(reference), np.abs(prediction)))
    if units.max() <= LAST_BITS:
        return Diagnosis("last_bits", f"differs in the last bits: by at most {count_of(round(units.max()), 'unit')}")
    if np.array_equal(prediction, _to_float32(reference)):
        return Diagnosis("output_float32", "agrees after rounding the predictions to float32")
    scale = float(np.abs(reference).max())
    if gaps.max() <= SUMMATION * scale:
        far = number(float(gaps.max()) / scale, 2)
        return Diagnosis("summation", f"differs by {far} of the largest, as adding up in another order leaves")
    return Diagnosis("within_tolerance", f"differs by at most {number(gaps.max(), 2)}, within the tolerance")


# ---- The prediction as a whole


def _agree(one: Prediction, other: Prediction, allowed: float) -> bool:
    with np.errstate(all="ignore"):
        return bool((np.abs(one - other) <= allowed).all())


def _look_at_order(reference: Prediction, prediction: Prediction, evidence: CellEvidence) -> Iterator[Diagnosis]:
    """Stale answers, and the right numbers in other places."""
    allowed = evidence.allowed
    for position, other in enumerate(evidence.others):
        if other.shape == prediction.shape and _agree(other, prediction, allowed):
            yield Diagnosis("stale", f"is the prediction for other data (set {position + 1}): the answer is stale")
    if (prediction == prediction.reshape(-1)[0]).all() and prediction.size > 1:
        yield Diagnosis("constant", f"every prediction is {number(float(prediction.reshape(-1)[0]), 3)}")
    columns = _match_columns(reference, prediction, allowed)
    if columns is not None:
        yield columns
    rows = _match_rows(reference, prediction, allowed)
    if rows is not None:
        yield rows


def _match_columns(reference: Prediction, prediction: Prediction, allowed: float) -> Diagnosis | None:
    """Columns, such as targets, classes or components, in another order or with another sign."""
    if reference.ndim != 2 or reference.shape[1] < 2:
        return None
    order: list[int] = []
    signs: list[int] = []
    for column in prediction.T:
        fits = [
            (position, sign)
            for position, wanted in enumerate(reference.T)
            for sign in (1, -1)
            if position not in order and _agree(sign * wanted, column, allowed)
        ]
        here = next((fit for fit in fits if fit[0] == len(order)), fits[0] if fits else None)
        if here is None:
            return None
        order.append(here[0])
        signs.append(here[1])
    moved = [position for position, source in enumerate(order) if position != source]
    flipped = [position for position, sign in enumerate(signs) if sign < 0]
    told = []
    if len(moved) == 2:
        told.append(f"columns {moved[0]} and {moved[1]} are swapped")
    elif moved:
        told.append(f"the columns are in the order {join_words(map(str, order))}")
    if flipped and len(flipped) == len(order) and not moved:
        return None  # the sign of everything
    if flipped:
        told.append(f"the sign of {_name('column', flipped)} is flipped")
    name = "columns_permuted" if moved else "column_sign"
    return Diagnosis(name, join_words(told)) if told else None


def _match_rows(reference: Prediction, prediction: Prediction, allowed: float) -> Diagnosis | None:
    """The same rows in another order."""
    one, other = (array.reshape(len(array), -1) for array in (reference, prediction))
    ours, theirs = (array[np.lexsort(array.T[::-1])] for array in (one, other))
    if len(one) < 2 or not _agree(ours, theirs, allowed):
        return None
    off = np.flatnonzero((np.abs(one - other) > allowed).any(axis=1))
    start = int(np.abs(one - other[0]).max(axis=1).argmin())
    if len(off) == 2:
        return Diagnosis("rows_swapped", f"rows {off[0]} and {off[1]} are swapped")
    if _agree(one[::-1], other, allowed):
        return Diagnosis("rows_reversed", "the rows are in reverse order")
    if _agree(np.roll(one, -start, axis=0), other, allowed):
        ahead = start if start <= len(one) // 2 else start - len(one)
        return Diagnosis("rows_shifted", f"the rows are shifted by {abs(ahead)} {'up' if ahead > 0 else 'down'}")
    moved = Diagnosis("rows_permuted", f"{len(off)} of {len(one)} rows are in other places")
    ordered = (np.diff(other[:, 0]) >= -allowed).all()
    return Diagnosis("rows_sorted", "the rows are sorted by their prediction") if ordered else moved


def _look_at_variants(_: Prediction, prediction: Prediction, evidence: CellEvidence) -> Iterator[Diagnosis]:
    """What the reference itself predicts if it makes the mistake."""
    for name, (sentence, variant) in evidence.variants.items():
        if variant.shape == prediction.shape and _agree(variant, prediction, evidence.allowed):
            told = sentence if sentence.startswith("agrees") else f"agrees with {name}: {sentence}"
            yield Diagnosis(name, told)


def _sigmoid(values: Prediction) -> Prediction:
    return 1 / (1 + np.exp(-values))


def _to_float32(values: Prediction) -> Prediction:
    return values.astype(np.float32).astype(np.float64)


def _rounding_to(digits: int) -> Callable[[Prediction], Prediction]:
    return lambda values: np.round(values, digits)


_FORMS: tuple[tuple[str, str, Callable[[Prediction], Prediction]], ...] = (
    ("sign", "the sign is flipped", np.negative),
    ("output_float32", "agrees after rounding the predictions to float32", _to_float32),
    (
        "output_float16",
        "agrees after rounding the predictions to float16",
        lambda values: values.astype(np.float16).astype(np.float64),
    ),
    *(
        (
            "output_decimals",
            f"agrees after rounding the predictions to {count_of(digits, 'decimal')}",
            _rounding_to(digits),
        )
        for digits in range(9)
    ),
    ("output_truncated", "agrees after cutting off the decimals", np.trunc),
    ("absolute", "is the absolute value of the reference", np.abs),
    ("clipped_at_0", "agrees after raising negative predictions to 0", lambda values: np.maximum(values, 0)),
    ("clipped_to_1", "agrees after clipping to 0 to 1", lambda values: np.clip(values, 0, 1)),
    ("link_logistic", "is the logistic function of the reference: a probability for a raw score", _sigmoid),
    ("link_logit", "is the log odds of the reference: a raw score for a probability", lambda p: np.log(p / (1 - p))),
    ("link_exp", "is the exponential of the reference", np.exp),
    ("link_log", "is the logarithm of the reference", np.log),
    ("complement", "is 1 minus the reference: the other class", lambda values: 1 - values),
    ("standardized", "is the reference, centered and scaled", lambda values: (values - values.mean()) / values.std()),
    (
        "softmax",
        "is the softmax of the reference",
        lambda values: np.exp(values) / np.exp(values).sum(axis=-1, keepdims=True),
    ),
)


def _look_at_values(reference: Prediction, prediction: Prediction, evidence: CellEvidence) -> Iterator[Diagnosis]:
    """A function of the reference: its sign, a rounding, a link, a factor and a shift."""
    for name, sentence, form in _FORMS:
        with np.errstate(all="ignore"):
            if _agree(form(reference), prediction, evidence.allowed):
                yield Diagnosis(name, sentence)
    whole = _fit_line(reference.reshape(-1), prediction.reshape(-1), evidence.allowed)
    if whole is not None:
        yield _tell_line(*whole, reference)
    if reference.ndim == 2 and reference.shape[1] > 1:
        lines = [_fit_line(one, other, evidence.allowed) for one, other in zip(reference.T, prediction.T, strict=True)]
        if all(line is not None for line in lines):
            told = [
                f"column {position} {_tell_line(*line, reference[:, position]).sentence}"
                for position, line in enumerate(lines)
                if line is not None and not _agree(reference[:, position], prediction[:, position], evidence.allowed)
            ]
            yield Diagnosis("columns_affine", join_words(told, most=3))
    for name, bound in (("above", prediction.max()), ("below", prediction.min())):
        cut = np.minimum(reference, bound) if name == "above" else np.maximum(reference, bound)
        if (prediction == bound).sum() > 1 and _agree(cut, prediction, evidence.allowed):
            yield Diagnosis("clipped", f"agrees after cutting off what is {name} {number(float(bound), 3)}")


def _look_at_precision(reference: Prediction, prediction: Prediction, _: CellEvidence) -> Iterator[Diagnosis]:
    largest = float(np.abs(reference).max())
    if _agree(reference, prediction, SINGLE * largest):
        far = number(float(np.abs(prediction - reference).max()) / largest, 2)
        yield Diagnosis("single_precision", f"differs by {far} of the largest, as computing in float32 leaves")


def _fit_line(one: Prediction, other: Prediction, allowed: float) -> tuple[float, float] | None:
    """The factor and the shift that make one of the other, if they do; a line through two numbers proves nothing."""
    if len(one) < 3:
        return None
    with np.errstate(all="ignore"):
        factor = float(other @ one / (one @ one))
        if _agree(factor * one, other, allowed * max(1.0, abs(factor))):
            return factor, 0.0
        shift = float((other - one).mean())
        if _agree(one + shift, other, allowed):
            return 1.0, shift
        centered = one - one.mean()
        factor = float(centered @ (other - other.mean()) / (centered @ centered))
        shift = float(other.mean() - factor * one.mean())
        if abs(factor) > 1e-9 and _agree(factor * one + shift, other, allowed * max(1.0, abs(factor))):
            return factor, shift
    return None


def _tell_line(factor: float, shift: float, reference: Prediction) -> Diagnosis:
    if factor == 1 and abs(shift + reference.mean()) <= 1e-6 * abs(shift):
        return Diagnosis("centered", "is the reference without its mean: an intercept or base score is left out")
    if factor == 1:
        return Diagnosis("shifted", f"is the reference {'plus' if shift > 0 else 'minus'} {number(abs(shift), 4)}")
    times = f"is {number(factor, 6)} times the reference"
    if shift == 0:
        return Diagnosis("scaled", times)
    return Diagnosis("affine", f"{times} {'plus' if shift > 0 else 'minus'} {number(abs(shift), 4)}")


# ---- Some of its rows


def _find_off(reference: Prediction, prediction: Prediction, evidence: CellEvidence) -> NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        gaps = np.abs(prediction - reference)
    return np.asarray((gaps > evidence.allowed).reshape(len(gaps), -1).any(axis=1))


def _count_off(reference: Prediction, prediction: Prediction, evidence: CellEvidence) -> str:
    off = _find_off(reference, prediction, evidence)
    return "every row is off" if off.all() else f"{int(off.sum())} of {len(off)} rows are off, the first {off.argmax()}"


def _look_at_rows(reference: Prediction, prediction: Prediction, evidence: CellEvidence) -> Iterator[Diagnosis]:
    """Where the rows are that are off, and what happened to them."""
    off = _find_off(reference, prediction, evidence)
    if not off.any() or off.all():
        return
    rows = np.flatnonzero(off)
    what = _tell_part(reference[off], prediction[off], evidence)
    for name, sentence in _locate(off, rows, evidence):
        told = f"{sentence}: {what.sentence}" if what else sentence
        yield Diagnosis(f"{name}_{what.name}" if what else name, told)


def _tell_part(reference: Prediction, prediction: Prediction, evidence: CellEvidence) -> Diagnosis | None:
    """What happened to the rows that are off, if the same happened to all of them."""
    if (prediction == 0).all():
        return Diagnosis("zero", "it is 0 there")
    if len(prediction) > 1 and (prediction == prediction.reshape(-1)[0]).all():
        return Diagnosis("constant", f"it is {number(float(prediction.reshape(-1)[0]), 3)} there")
    for look in (_look_at_order, _look_at_values):
        found = next(look(reference, prediction, evidence._replace(others=(), variants={})), None)
        if found is not None:
            plain = found.sentence.startswith(("is ", "agrees "))
            return Diagnosis(found.name, f"there it {found.sentence}" if plain else f"{found.sentence} there")
    return None


def _locate(off: NDArray[np.bool_], rows: RowIndices, evidence: CellEvidence) -> Iterator[tuple[str, str]]:
    """Where the rows are, from what tells most to what tells least."""
    x = evidence.x
    if x is not None and x.ndim == 2 and len(x) == len(off):
        missing, marked = np.isnan(x).any(axis=1), evidence.marked
        if _holds(missing, off):
            yield "missing", f"off only where a value is missing ({len(rows)} of {int(missing.sum())} such rows)"
        if marked is not None and _holds(marked, off):
            yield "threshold", f"off only in rows on a threshold ({len(rows)} of {int(marked.sum())} such rows)"
        yield from _separate(off, x)
    if len(rows) <= _LISTED:
        yield ("one_row" if len(rows) == 1 else "few_rows"), f"{_name('row', rows.tolist())} {_be(rows)} off"
    elif rows[-1] - rows[0] + 1 == len(rows):
        yield "block", f"rows {rows[0]} to {rows[-1]} are off, and no other"
    elif len(set(np.diff(rows))) == 1:
        yield "every_nth", f"every {rows[1] - rows[0]}th row is off, from row {rows[0]}"
    else:
        yield "rows", f"{len(rows)} of {len(off)} rows are off, the first {rows[0]}"


def _holds(kind: NDArray[np.bool_], off: NDArray[np.bool_]) -> bool:
    """Whether all rows that are off are of a kind, which not all rows are; one or two may be so by chance."""
    return bool(kind[off].all() and not kind.all() and off.sum() >= min(_ENOUGH, int(kind.sum())))


def _separate(off: NDArray[np.bool_], x: Prediction) -> Iterator[tuple[str, str]]:
    """A column whose values tell the rows that are off from all others."""
    if min(off.sum(), (~off).sum()) < _ENOUGH:
        return
    for position, column in enumerate(x.T):
        inside, outside = column[off], column[~off]
        if np.isnan(inside).all() and not np.isnan(outside).any():
            yield "column_missing", f"off exactly where column {position} is missing"
        if np.isnan(column).any():
            continue
        if len(set(inside)) == 1 and inside[0] not in outside:
            yield "column_value", f"off exactly where column {position} is {number(float(inside[0]), 4)}"
        elif inside.min() > outside.max():
            yield "column_above", f"off exactly where column {position} is above {number(float(outside.max()), 4)}"
        elif inside.max() < outside.min():
            yield "column_below", f"off exactly where column {position} is below {number(float(outside.min()), 4)}"


def _name(noun: str, positions: Sequence[int]) -> str:
    return f"{noun}{'s' if len(positions) > 1 else ''} {join_words(map(str, positions))}"


def _be(rows: RowIndices) -> str:
    return "is" if len(rows) == 1 else "are"
