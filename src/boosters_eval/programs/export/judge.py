"""From a saved model to the answer: its own predictions, those of its exports, and what makes the one of the other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from boosters_eval.core.errors import ConfigError, RunError, suggest
from boosters_eval.core.files import check_regular, compute_file_digest, find_home
from boosters_eval.core.request import Repeat
from boosters_eval.core.terms import the
from boosters_eval.core.text import clean
from boosters_eval.engine.artifacts import load_array, locate_array
from boosters_eval.engine.cell import make_key
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.plan import CellRef, Plan
from boosters_eval.engine.session import PlannedRun, open_session
from boosters_eval.programs.export.findings import CheckedExport, ExportFindings, ExportPart, ExportPlace
from boosters_eval.programs.export.runtimes import RUNTIMES, find_version, locate_export
from boosters_eval.programs.export.workload import (
    ITSELF,
    PARTS,
    SAMPLE,
    THRESHOLD,
    ExportOutcome,
    ExportSpec,
    tell_error,
)
from boosters_eval.programs.parity.diagnosis import SINGLE, CellEvidence, Diagnosis, describe_agreement, diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from boosters_eval.core.findings import Findings
    from boosters_eval.engine.cell import Cell, Failure
    from boosters_eval.engine.folder import Run
    from boosters_eval.engine.session import Session
    from boosters_eval.programs.export.request import ExportRequest

    Predicted = NDArray[np.float64]
    RowMask = NDArray[np.bool_]

EXPORT = "export"
_TOLERANCE = 1e-5
_MOST_PLACES = 5
_ONCE = Repeat(0)
_DISTRIBUTIONS = {"sklearn": "scikit-learn", "xgboost": "xgboost|xgboost-cpu"}
# What is known to differ: the runtime, how it differs, and where that is described.
_DART = "https://xgboost.readthedocs.io/en/stable/tutorials/dart.html"
_SINGLE_ONNX = "https://github.com/onnx/onnxmltools/issues/708"
_KNOWN = {
    ("onnxruntime-onnxmltools", "drop_weights"): _DART,
    ("boosters", "drop_weights"): _DART,
    ("onnxruntime-onnxmltools", "thresholds_float32"): _SINGLE_ONNX,
    ("onnxruntime-onnxmltools", "compare_float32"): _SINGLE_ONNX,
    ("onnxruntime-onnxmltools", "input_float32"): _SINGLE_ONNX,
    ("boosters", "compare_float32_below"): _SINGLE_ONNX,
    ("boosters", "thresholds_float32"): _SINGLE_ONNX,
    ("onnxruntime-onnxmltools", "linear_leaves_float32"): _SINGLE_ONNX,
    ("lleaves", "linear_leaves"): "https://github.com/siboehm/lleaves/issues/78",
    ("interface", "best_iteration"): "https://xgboost.readthedocs.io/en/stable/prediction.html",
}


def check_export(request: ExportRequest) -> Findings:
    judge = _Judge(request)
    if request.dry_run:
        return PlannedRun.of(judge.first, request)
    with open_session(request, judge.first) as session:
        return judge.run(session)


class _Judge:
    """One model, its own answer, and the answers of its exports."""

    def __init__(self, request: ExportRequest) -> None:
        self.request = request
        self.digests = {
            path: compute_file_digest(path) for path in (request.model, request.rows) if check_regular(path) >= 0
        }
        unknown = next((name for name in request.runtimes if name not in RUNTIMES), None)
        if unknown is not None:
            raise ConfigError(f"{the('runtimes')} must be among {', '.join(RUNTIMES)}.{suggest(unknown, RUNTIMES)}")
        self.own = {name: locate_export(name) for name in request.exports}
        self.first = Plan.of(EXPORT, [self._spec(ITSELF)], [CellRef(0, ITSELF, *_ONCE)])

    def _spec(self, name: str, **more: Any) -> ExportSpec:
        request = self.request
        return ExportSpec(
            name=name,
            model=self.digests[request.model],
            sample=self.digests[request.rows],
            ending=request.model.suffix.lower(),
            **more,
        )

    def _arrays(self, plan: Plan) -> Path:
        return RunFolder(find_home(self.request.home).absolute() / "runs" / plan.run_id).arrays

    def run(self, session: Session) -> ExportFindings:
        request, arrays = self.request, self._arrays(self.first)
        places = {"model": str(request.model.absolute()), "sample": str(request.rows.absolute())}
        ran = session.run(self.first, EXPORT, lambda *_: {**places, "artifacts": str(arrays)})
        itself = ran.outcomes.get(make_key(ITSELF, ITSELF, *_ONCE))
        if not isinstance(itself, ExportOutcome):
            failure = cast("Failure | None", itself)
            told = "it was not run" if failure is None else clean(failure.error_message)
            raise RunError(f"{request.model.name} cannot be asked: {told}")
        self.itself = itself
        self.x, self.places, self.expected = (
            load_array(arrays, digest) for digest in (itself.rows, itself.places, itself.predictions)
        )
        self.mistakes = {
            name: (sentence, load_array(arrays, digest)) for name, (sentence, digest) in itself.mistakes.items()
        }
        of_sample = self.expected[self.places[:, 0] == SAMPLE]
        spread = float(np.nan_to_num(of_sample.std(axis=0)).max()) or float(
            np.nan_to_num(self.expected.std(axis=0)).max()
        )
        self.spread = spread or float(np.nan_to_num(np.abs(self.expected)).max()) or 1.0
        self.tolerance = _TOLERANCE if request.tolerance is None else request.tolerance
        self.allowed = self.tolerance * self.spread
        self.version = find_version(_DISTRIBUTIONS.get(itself.library, itself.library))
        exports = list(self._check_exports(session, arrays))
        judges = itself.kind == "regression" or request.tolerance is not None
        return ExportFindings(
            run=self.first.run_id,
            model=request.model.name,
            library=itself.library,
            version=self.version,
            task=itself.kind,
            rows=len(self.x),
            thresholds=itself.thresholds,
            allowed=self.allowed,
            tolerance=self.tolerance,
            judges_values=judges,
            exports=tuple(exports),
            notes=itself.notes,
        )

    def _check_exports(self, session: Session, arrays: Path) -> Iterator[CheckedExport]:
        request, itself = self.request, self.itself
        chosen = [name for name, one in RUNTIMES.items() if itself.library in one.libraries]
        if request.runtimes or request.exports:
            foreign = [name for name in request.runtimes if name not in chosen]
            if foreign:
                raise ConfigError(f"{the('runtimes')} must take models of {itself.library}. {foreign[0]} does not.")
            chosen = list(request.runtimes)
        missing = {name: why for name in chosen if (why := RUNTIMES[name].missing())}
        able = [name for name in chosen if name not in missing]
        more: dict[str, Any] = {"rows": itself.rows, "texts": itself.texts}
        specs = [self._spec(name, **more) for name in able]
        specs += [
            self._spec(name, export=name, content=compute_file_digest(path), **more) for name, path in self.own.items()
        ]
        outcomes: Mapping[str, Any] = {}
        if specs:
            refs = [CellRef(at, spec.name, *_ONCE) for at, spec in enumerate(specs)]
            plan = Plan.of(f"{EXPORT}-runtimes", specs, refs)
            kept = self._arrays(plan)

            def locate(cell: Cell, scratch: Path) -> dict[str, str]:  # noqa: ARG001 (the signature of a locator)
                of_rows = {"rows": itself.rows, "places": itself.places}
                found = {name: str(locate_array(arrays, digest)) for name, digest in of_rows.items()}
                export = cell.target.name.replace(str(self.own.get(cell.target.name, "")), "", 1)
                path = self.own.get(cell.target.name)
                own = {} if path is None else {"export": f"{path.absolute()}{export}", "root": str(Path.cwd())}
                return {**found, **own, "model": str(request.model.absolute()), "artifacts": str(kept)}

            ran: Run = session.run(plan, EXPORT, locate)
            outcomes = {spec.name: ran.outcomes.get(make_key(spec.name, spec.name, *_ONCE)) for spec in specs}
        for name in (*chosen, *self.own):
            asked = name in request.runtimes or name in self.own
            version = "" if name in self.own else RUNTIMES[name].version or self.version
            about: dict[str, Any] = {"name": name, "version": version}
            if name in missing:
                yield CheckedExport(**about, state="not installed", judged=asked, reason=missing[name])
                continue
            outcome = outcomes[name]
            if isinstance(outcome, ExportOutcome):
                yield self._compare(about, outcome, load_array(kept, outcome.predictions))
            else:
                yield _tell_failure(about, outcome, asked=asked)

    def _compare(self, about: dict[str, Any], outcome: ExportOutcome, found: Predicted) -> CheckedExport:
        expected, places = self.expected, self.places
        if found.ndim == 2 and expected.ndim == 1 and found.shape[1] == 2 and self.itself.kind == "binary":
            found = found[:, 1]
        if found.shape != expected.shape:
            shapes = (" x ".join(map(str, one.shape)) for one in (found, expected))
            told = "It predicts {} numbers instead of {}.".format(*shapes)
            return CheckedExport(**about, state="failed", reason=told)
        taken = np.ones(len(places), dtype=bool)
        for part, column, _ in outcome.refused:
            taken &= ~((places[:, 0] == part) & (places[:, 1] == column))
        off = self._find_off(expected, found, self.allowed) & taken
        decided = _decide(expected, self.itself.kind) != _decide(found, self.itself.kind)
        decided &= taken & (self.itself.kind != "regression")
        differs = self._find_off(expected, found, 0.0) & taken
        about |= {
            "rows": int(taken.sum()),
            "off": int(off.sum()),
            "decisions": int(decided.sum()),
            "refused": tuple(dict.fromkeys(f"{PARTS[part]}: {reason}" for part, _, reason in outcome.refused)),
            "parts": tuple(_count_parts(places, taken, off, decided)),
        }
        if not differs.any():
            return CheckedExport(**about, state="identical", largest=0.0, deviations=0.0)
        with np.errstate(all="ignore"):
            gaps = np.where(expected == found, 0.0, np.abs(found - expected))[differs]
        finite = bool(np.isfinite(gaps).all())
        about |= {
            "largest": float(gaps.max()) if finite else None,
            "deviations": float(gaps.max()) / self.spread if finite else None,
        }
        seen = off | decided
        if not seen.any():
            agreed = describe_agreement(*(np.nan_to_num(one[taken]) for one in (expected, found)))
            left = {"cause": agreed.name, "diagnosis": agreed.sentence} if agreed else {}
            return CheckedExport(**about, state="agrees", **left)
        cause = self._diagnose(found, taken, off)
        return CheckedExport(
            **about,
            state="changes decisions" if decided.any() else "differs",
            cause=cause.name,
            diagnosis=cause.sentence,
            reference=next(
                (_KNOWN[key] for one in cause.name.split(" + ") if (key := (about["name"], one)) in _KNOWN), ""
            ),
            places=tuple(self._list_places(seen)),
        )

    def _find_off(self, expected: Predicted, found: Predicted, allowed: float) -> RowMask:
        """Rows with a value that is too far off; what is no number agrees only with the same."""
        with np.errstate(all="ignore"):
            near = (np.abs(found - expected) <= allowed) | (expected == found) | (np.isnan(expected) & np.isnan(found))
        return np.asarray(~near.reshape(len(near), -1).all(axis=1))

    def _diagnose(self, found: Predicted, taken: RowMask, off: RowMask) -> Diagnosis:
        """The mistake that turns what the model predicts into what the export predicts."""
        broken = ~np.isfinite(found.reshape(len(found), -1)).all(axis=1) & off
        if broken.any():
            return Diagnosis("not_finite", f"predicts no number in {int(broken.sum())} rows")
        here = taken & np.isfinite(self.expected.reshape(len(self.expected), -1)).all(axis=1)
        here &= np.isfinite(found.reshape(len(found), -1)).all(axis=1)
        expected, told = self.expected[here], found[here]
        allowed = max(self.allowed, SINGLE * float(np.abs(expected).max()))
        finite = {
            name: (sentence, array[here])
            for name, (sentence, array) in self.mistakes.items()
            if np.isfinite(array[here]).all()
        }
        if self.itself.kind == "binary":
            shift = _find_shift(expected, told)
            fits = any(np.abs(array - told).max() <= allowed for _, array in finite.values())
            if shift is not None and not fits:
                return Diagnosis(
                    "score_shifted", f"its scores are shifted by {shift:.4g}: a base score is left out or added"
                )
        evidence = CellEvidence(
            allowed=allowed,
            x=self.x[here],
            marked=self.places[here, 0] == THRESHOLD,
            variants=finite,
        )
        whole = diagnose(expected, told, evidence)
        if (
            whole.name in finite
            or np.abs(told - expected).max(initial=0, where=~off[here].reshape(-1, *[1] * (told.ndim - 1))) > allowed
        ):
            return whole
        apart = self._diagnose_parts(expected, told, self.places[here, 0], finite, allowed)
        return apart or whole

    def _diagnose_parts(
        self,
        expected: Predicted,
        found: Predicted,
        parts: Predicted,
        mistakes: Mapping[str, tuple[str, Predicted]],
        allowed: float,
    ) -> Diagnosis | None:
        """A mistake for each kind of rows, where no single one explains them all."""
        causes: dict[str, list[str]] = {}
        names: dict[str, str] = {}
        for part in np.unique(parts):
            rows = parts == part
            one, other = expected[rows], found[rows]
            if np.abs(one - other).max() <= allowed:
                continue
            fits = (
                (name, sentence)
                for name, (sentence, array) in mistakes.items()
                if np.abs(array[rows] - other).max() <= allowed
            )
            name, sentence = next(fits, ("", ""))
            if not name:
                return None
            names[name] = sentence
            causes.setdefault(name, []).append(PARTS[int(part)])
        told = "; ".join(f"{' and '.join(where)}: {names[name]}" for name, where in causes.items())
        return Diagnosis(" + ".join(causes), told) if causes else None

    def _list_places(self, seen: RowMask) -> Iterator[ExportPlace]:
        """The thresholds on which most rows are off."""
        rows = self.places[seen & (self.places[:, 0] == THRESHOLD)]
        counts = Counter((int(one[1]), float(one[2])) for one in rows)
        for (column, threshold), count in counts.most_common(_MOST_PLACES):
            yield ExportPlace(column=self.itself.columns[column], threshold=threshold, rows=count)


def _decide(predicted: Predicted, kind: str) -> NDArray[Any]:
    if predicted.ndim == 1:
        return np.asarray(predicted > 0.5) if kind == "binary" else np.zeros(len(predicted))
    return np.asarray(np.nan_to_num(predicted, nan=-np.inf).argmax(axis=1))


def _find_shift(expected: Predicted, found: Predicted) -> float | None:
    """The constant that is between the scores of two sets of probabilities, if there is one."""
    inside = (expected > 1e-4) & (expected < 1 - 1e-4) & (found > 1e-6) & (found < 1 - 1e-6)
    if inside.sum() < 3:
        return None
    gaps = np.log(found[inside] / (1 - found[inside])) - np.log(expected[inside] / (1 - expected[inside]))
    middle = float(np.median(gaps))
    return middle if abs(middle) > 1e-3 and np.abs(gaps - middle).max() <= 1e-2 * abs(middle) else None


def _count_parts(places: Predicted, taken: RowMask, off: RowMask, decided: RowMask) -> Iterator[ExportPart]:
    for part, name in enumerate(PARTS):
        here = (places[:, 0] == part) & taken
        if here.any():
            yield ExportPart(
                name=name, rows=int(here.sum()), off=int((off & here).sum()), decisions=int((decided & here).sum())
            )


def _tell_failure(about: dict[str, Any], failure: Failure | None, *, asked: bool) -> CheckedExport:
    """What is not supported is told; what crashes, or was asked for, leaves the question open."""
    if failure is None:
        return CheckedExport(**about, state="failed", reason="it was not run")
    crashed = failure.signal is not None or failure.phase == "predict"
    reason = tell_error(failure.error_message)
    return CheckedExport(
        **about, state="failed" if crashed else "cannot be exported", judged=asked or crashed, reason=reason
    )
