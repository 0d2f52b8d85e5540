"""Saved models: what each library's file tells of columns, classes and thresholds, and how it predicts."""

from __future__ import annotations

import copy
import json
import tempfile
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.text import join_words
from boosters_eval.programs.export.request import FORMATS, PICKLES
from boosters_eval.programs.parity.trees import alter_lightgbm, alter_xgboost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    ExportRows = NDArray[np.float64]
    PredictRows = Callable[[ExportRows], Any]

ModelKind = Literal["regression", "binary", "classes"]


class ExportError(BoostersEvalError):
    """A model, a sample or an export that cannot be read, or that does not fit the others."""


class FlatTree(NamedTuple):
    """A tree by nodes: a leaf has no left child; a node that splits by categories has no threshold."""

    column: Sequence[int]
    threshold: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]


class ModelSplit(NamedTuple):
    """A threshold, and between which values each column must be for a row to come to it."""

    column: int
    threshold: float
    bounds: Mapping[int, tuple[float, float]]


@dataclass(frozen=True)
class OpenedModel:
    """A model as its own library loads it."""

    library: str
    model: Any
    predict: PredictRows
    width: int
    kind: ModelKind = "regression"
    names: tuple[str, ...] = ()  # of columns; empty: they have none
    classes: tuple[str, ...] = ()
    categorical: tuple[int, ...] = ()
    codes: tuple[tuple[str, ...], ...] = ()  # of the texts in each categorical column, where the model has them
    single: bool = False  # whether inputs are compared in single precision
    zero: float = 0.0  # numbers that are no farther from 0 are taken for it
    trees: tuple[FlatTree, ...] = ()
    # What the same model predicts with a mistake that exporters make, by name, with a sentence.
    mistakes: Mapping[str, tuple[str, PredictRows]] = field(default_factory=dict)

    def splits(self) -> Iterator[ModelSplit]:
        """Each threshold once, with the bounds of the first node that has it."""
        seen: set[tuple[int, float]] = set()
        for tree in self.trees:
            waiting: list[tuple[int, dict[int, tuple[float, float]]]] = [(0, {})]
            while waiting and len(tree.left):
                node, bounds = waiting.pop()
                if tree.left[node] < 0:
                    continue
                column, threshold = int(tree.column[node]), float(tree.threshold[node])
                low, high = bounds.get(column, (-np.inf, np.inf))
                numeric = np.isfinite(threshold) and abs(threshold) < 1e30  # a larger one tells missing values apart
                if numeric and (column, threshold) not in seen:
                    seen.add((column, threshold))
                    yield ModelSplit(column, threshold, bounds)
                sides = ((low, min(high, threshold)), (max(low, threshold), high)) if numeric else ((low, high),) * 2
                for child, side in zip((tree.left[node], tree.right[node]), sides, strict=True):
                    waiting.append((int(child), {**bounds, column: side}))


def open_saved(path: Path) -> OpenedModel:
    """The model in a file, by its ending and its content; never a pickle."""
    ending = path.suffix.lower()
    library = FORMATS.get(ending, "")
    if ending in PICKLES:
        raise ExportError(f"{path.name} is a pickle, which can run any code: it is not opened.")
    if ending == ".json":
        library = _tell_json(path)
    if not library:
        raise ExportError(f"{path.name} is no model of a library that is known here.")
    try:
        return _OPENERS[library](path)
    except ImportError as error:
        raise ExportError(f"{path.name} needs {error.name}: pip install {error.name}") from error
    except BoostersEvalError:
        raise
    except Exception as error:
        raise ExportError(f"{path.name} cannot be opened as a model of {library}: {error}") from error


def _tell_json(path: Path) -> str:
    keys = {"learner": "xgboost", "oblivious_trees": "catboost", "trees": "catboost", "model_type": "boosters"}
    content = json.loads(path.read_text())
    return next((library for key, library in keys.items() if key in content), "")


# ---- XGBoost


def _open_xgboost(path: Path) -> OpenedModel:
    return read_xgboost(path.read_bytes())


def read_xgboost(content: bytes) -> OpenedModel:
    xgb = import_module("xgboost")

    def load(text: bytes) -> Any:
        model = xgb.Booster({"nthread": 1}, model_file=bytearray(text))
        if objective == "multi:softmax":  # which gives the class alone
            model.set_param({"objective": "multi:softprob"})
        return model

    objective = ""
    text = bytes(load(content).save_raw("json"))
    found = json.loads(text)
    learner = found["learner"]
    objective = learner["objective"]["name"]
    types = learner.get("feature_types") or []
    width = int(learner["learner_model_param"]["num_feature"])
    booster = learner["gradient_booster"]
    trees = booster.get("gbtree", booster).get("model", {}).get("trees", [])

    def ask(model: Any, x: ExportRows, **options: Any) -> Any:
        data = xgb.DMatrix(x, nthread=1, feature_types=types or None, feature_names=learner["feature_names"] or None)
        return model.predict(data, **options)

    def altered(**changes: str) -> PredictRows:
        return partial(ask, load(alter_xgboost(text, changes)))

    model = load(content)
    count = model.num_boosted_rounds()
    classes = int(learner["learner_model_param"]["num_class"])
    # A score of 0 before the link.
    neutral = 0.5 if "logistic" in objective or objective == "binary:logitraw" else _LINKED_ZERO.get(objective, 0.0)
    without = copy.deepcopy(found)
    without["learner"]["learner_model_param"]["base_score"] = (
        f"[{','.join([str(neutral)] * len(str(learner['learner_model_param']['base_score']).split(',')))}]"
    )
    mistakes: dict[str, tuple[str, PredictRows]] = {
        "base_score": ("agrees without the base score", partial(ask, _try_loading(load, without) or model)),
        "missing_direction": (
            "agrees if missing values go to the other side",
            altered(missing_direction="swapped"),
        ),
    }
    if count > 1:
        mistakes["last_tree"] = ("agrees without the last tree", partial(ask, model, iteration_range=(0, count - 1)))
    best = model.attributes().get("best_iteration")
    if best is not None:
        end = (0, int(best) + 1)
        mistakes["best_iteration"] = (
            "agrees with the trees up to the best one alone",
            partial(ask, model, iteration_range=end),
        )
    if "weight_drop" in booster or "weight_drop" in booster.get("model", {}):
        mistakes["drop_weights"] = ("agrees without the drop weights of dart", altered(drop_weights="ignored"))
    return OpenedModel(
        *("xgboost", model, partial(ask, model), width),
        kind="classes" if classes > 1 else "binary" if objective.startswith("binary:") else "regression",
        names=tuple(learner["feature_names"]),
        categorical=tuple(at for at, kind in enumerate(types) if kind == "c"),
        single=True,
        trees=tuple(
            FlatTree(
                tree["split_indices"],
                [
                    np.inf if kind else value
                    for value, kind in zip(tree["split_conditions"], tree["split_type"], strict=True)
                ],
                *(tree["left_children"], tree["right_children"]),
            )
            for tree in trees
        ),
        mistakes=mistakes,
    )


_LINKED_ZERO = {"count:poisson": 1.0, "reg:gamma": 1.0, "reg:tweedie": 1.0, "survival:cox": 1.0}


def _try_loading(load: Callable[[bytes], Any], content: Any) -> Any:
    """None where the library does not read what was changed."""
    try:
        return load(json.dumps(content).encode())
    except Exception:  # noqa: BLE001 (then this mistake cannot be told)
        return None


# ---- LightGBM


def _open_lightgbm(path: Path) -> OpenedModel:
    lgb = import_module("lightgbm")
    text = path.read_text()

    def load(text: str) -> Any:
        return lgb.Booster(model_str=text)

    def ask(model: Any, x: ExportRows, **options: Any) -> Any:
        return model.predict(x, num_threads=1, **options)

    def altered(**changes: str) -> PredictRows:
        return partial(ask, load(alter_lightgbm(text, changes)))

    model = load(text)
    dump = model.dump_model()
    objective, count = str(dump.get("objective", "")).partition(" ")[0], model.current_iteration()
    infos = next(
        (line[len("feature_infos=") :].split() for line in text.splitlines() if line.startswith("feature_infos=")), []
    )
    categorical = tuple(at for at, told in enumerate(infos) if told[:1] not in ("[", "n"))
    rounded = altered(thresholds="float32")
    mistakes: dict[str, tuple[str, PredictRows]] = {
        "thresholds_float32": ("agrees if thresholds are rounded to float32", rounded),
        "compare_float32": (
            "agrees if inputs and thresholds are rounded to float32",
            lambda x: rounded(x.astype(np.float32).astype(np.float64)),
        ),
        "compare_float32_below": (
            "agrees if inputs and thresholds are rounded to float32, and those that are equal go to the right",
            lambda x: rounded(np.nextafter(x.astype(np.float32), np.float32(np.inf)).astype(np.float64)),
        ),
        "missing_direction": (
            "agrees if missing values go to the other side",
            altered(missing_direction="swapped"),
        ),
    }
    if count > 1:
        mistakes["last_tree"] = ("agrees without the last tree", partial(ask, model, num_iteration=count - 1))
    if "is_linear=1" in text:
        bare = altered(linear_leaves="ignored", thresholds="float32")
        mistakes["linear_leaves"] = ("agrees without the linear models of the leaves", altered(linear_leaves="ignored"))
        mistakes["linear_leaves_float32"] = (
            "agrees without the linear models of the leaves, with inputs and thresholds rounded to float32",
            lambda x: bare(x.astype(np.float32).astype(np.float64)),
        )
    classes = int(dump["num_class"])
    best = model.best_iteration
    if 0 < best < count:
        mistakes["best_iteration"] = (
            "agrees with the trees up to the best one alone",
            partial(ask, model, num_iteration=best),
        )
    return OpenedModel(
        *("lightgbm", model, partial(ask, model), model.num_feature()),
        kind="classes" if classes > 1 else "binary" if objective == "binary" else "regression",
        names=tuple(model.feature_name()),
        categorical=categorical,
        codes=tuple(tuple(map(str, values)) for values in model.pandas_categorical or ()),
        zero=float(np.float32(1e-35)),
        trees=tuple(_flatten(tree["tree_structure"]) for tree in dump["tree_info"]),
        mistakes=mistakes,
    )


def _flatten(root: dict[str, Any]) -> FlatTree:
    nodes: list[tuple[int, float, int, int]] = []

    def add(node: dict[str, Any]) -> int:
        place = len(nodes)
        nodes.append((0, 0.0, -1, -1))
        if "split_feature" in node:
            threshold = float(node["threshold"]) if node["decision_type"] == "<=" else np.inf
            nodes[place] = (node["split_feature"], threshold, add(node["left_child"]), add(node["right_child"]))
        return place

    add(root)
    return FlatTree(*map(list, zip(*nodes, strict=True)))


# ---- CatBoost


def _open_catboost(path: Path) -> OpenedModel:
    catboost = import_module("catboost")
    form = "json" if path.suffix.lower() == ".json" else "cbm"
    model = catboost.CatBoost().load_model(str(path), format=form)
    categorical = tuple(model.get_cat_feature_indices())
    classes = tuple(map(str, model.classes_))

    def ask(one: Any, x: ExportRows, **options: Any) -> Any:
        rows: Any = x.astype(np.float32)
        if categorical:
            rows = rows.astype(object)
            for column in categorical:
                rows[:, column] = [name_category(column, value) for value in x[:, column]]
        if not classes:
            return one.predict(rows, thread_count=1, **options)
        found = np.asarray(one.predict(rows, prediction_type="Probability", thread_count=1, **options))
        return found[:, 1] if len(classes) == 2 else found

    bare = model.copy()
    bare.set_scale_and_bias(1.0, [0.0] * len(classes) if len(classes) > 2 else 0.0)
    mistakes: dict[str, tuple[str, PredictRows]] = {"base_score": ("agrees without scale and bias", partial(ask, bare))}
    if model.tree_count_ > 1:
        mistakes["last_tree"] = ("agrees without the last tree", partial(ask, model, ntree_end=model.tree_count_ - 1))
    borders = model.get_borders()
    return OpenedModel(
        *("catboost", model, partial(ask, model), len(model.feature_names_)),
        kind="regression" if not classes else "binary" if len(classes) == 2 else "classes",
        names=tuple(model.feature_names_),
        classes=classes,
        categorical=categorical,
        single=True,
        # Each level of its trees is asked of every row: a tree per border stands for them.
        trees=tuple(
            FlatTree([int(column), 0, 0], [float(value), 0, 0], [1, -1, -1], [2, -1, -1])
            for column, values in borders.items()
            for value in values
        ),
        mistakes=mistakes,
    )


# The texts of a column by their codes, as the sample has them: CatBoost's files hold only their hashes.
TEXTS: dict[int, Sequence[str]] = {}


def name_category(column: int, value: float) -> str:
    """A code as the text that CatBoost is given; of a column of numbers, the number."""
    whole = np.isfinite(value) and value == int(value)
    texts = TEXTS.get(column, ())
    return texts[int(value)] if whole and 0 <= value < len(texts) else str(int(value)) if whole else str(value)


def name_categories(x: ExportRows) -> Any:
    """The rows as whoever has no codes knows them: with the texts of the sample, if it has any."""
    if not TEXTS:
        return x
    rows = x.astype(object)
    for column in TEXTS:
        rows[:, column] = [name_category(column, value) for value in x[:, column]]
    return rows


# ---- scikit-learn


def _open_sklearn(path: Path) -> OpenedModel:
    skops = import_module("skops.io")
    unknown = [name for name in skops.get_untrusted_types(file=path) if not name.startswith("sklearn.")]
    if unknown:
        raise ExportError(
            f"{path.name} holds {join_words(unknown, most=3)}, which is neither scikit-learn's nor numpy's."
        )
    return read_sklearn(skops.load(path, trusted=skops.get_untrusted_types(file=path)))


def read_sklearn(model: Any) -> OpenedModel:
    classes = tuple(map(str, getattr(model, "classes_", ())))

    def ask(one: Any, x: ExportRows) -> Any:
        found = one.predict_proba(x) if classes else one.predict(x)
        return found[:, 1] if len(classes) == 2 else found

    bare = copy.deepcopy(model)
    if hasattr(bare, "_baseline_prediction"):
        bare._baseline_prediction = np.zeros_like(bare._baseline_prediction)  # noqa: SLF001 (there is no other way)
    elif hasattr(bare, "init_"):
        bare.init_ = "zero"
    trees = tuple(_list_sklearn_trees(model))
    return OpenedModel(
        *("sklearn", model, partial(ask, model), int(model.n_features_in_)),
        kind="regression" if not classes else "binary" if len(classes) == 2 else "classes",
        names=tuple(map(str, getattr(model, "feature_names_in_", ()))),
        classes=classes,
        single=not hasattr(model, "_predictors"),
        trees=trees,
        mistakes={"base_score": ("agrees without the first constant prediction", partial(ask, bare))},
    )


def _list_sklearn_trees(model: Any) -> Iterator[FlatTree]:
    if hasattr(model, "_predictors"):
        for predictor in (one for stage in model._predictors for one in stage):  # noqa: SLF001 (there is no other way)
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            threshold = np.where(nodes["is_categorical"].astype(bool), np.inf, nodes["num_threshold"])
            left = np.where(leaf, -1, nodes["left"].astype(int))
            yield FlatTree(nodes["feature_idx"], threshold, left, nodes["right"].astype(int))  # type: ignore[arg-type]
        return
    members = getattr(model, "estimators_", [model])
    for one in np.ravel(np.asarray(members, dtype=object)):
        tree = getattr(one, "tree_", None)
        if tree is not None:
            yield FlatTree(tree.feature, tree.threshold, tree.children_left, tree.children_right)


# ---- boosters


def _open_boosters(path: Path) -> OpenedModel:
    return read_boosters(path.read_bytes())


def read_boosters(content: bytes) -> OpenedModel:
    boosters = import_module("boosters")

    def load(content: bytes) -> Any:
        if not content.lstrip().startswith(b"{"):
            return boosters.Model.load_from_bytes(content)
        kind = json.loads(content)["model_type"]
        return (boosters.GBDTModel if kind == "gbdt" else boosters.GBLinearModel).from_json_bytes(content)

    def ask(one: Any, x: ExportRows) -> Any:
        found = np.asarray(one.predict(boosters.Dataset(np.ascontiguousarray(x, dtype=np.float32)), n_threads=1))
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found

    model = load(content)
    found = json.loads(bytes(model.to_json_bytes()))
    inner = found["model"]
    forest = inner.get("forest", {})
    without = copy.deepcopy(found)
    mistakes: dict[str, tuple[str, PredictRows]] = {}
    if forest:
        without["model"]["forest"]["base_score"] = [0.0] * len(forest["base_score"])
        bare = _try_loading(load, without)
        mistakes["base_score"] = ("agrees without the base score", partial(ask, bare or model))
    kinds: dict[str, ModelKind] = {"sigmoid": "binary", "softmax": "classes"}
    return OpenedModel(
        *("boosters", model, partial(ask, model), int(model.n_features)),
        kind=kinds.get(str(inner.get("output_transform")), "regression"),
        names=tuple(model.feature_names or ()),
        single=True,
        trees=tuple(
            FlatTree(
                tree["split_indices"],
                tree["thresholds"],
                [left or -1 for left in tree["children_left"]],
                tree["children_right"],
            )
            for tree in forest.get("trees", ())
        ),
        mistakes=mistakes,
    )


_OPENERS: dict[str, Callable[[Path], OpenedModel]] = {
    "xgboost": _open_xgboost,
    "lightgbm": _open_lightgbm,
    "catboost": _open_catboost,
    "sklearn": _open_sklearn,
    "boosters": _open_boosters,
}


def save_apart(ending: str, write: Callable[[str], object]) -> bytes:
    """What a library writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"model{ending}")
        write(str(path))
        return path.read_bytes()


def open_bytes(content: bytes, ending: str) -> OpenedModel:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"model{ending}")
        path.write_bytes(content)
        return open_saved(path)


def list_names(names: Iterable[str]) -> str:
    return join_words(names, most=5)
