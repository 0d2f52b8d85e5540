"""What a user brings to `upgrade-check`: the native parameters of a project, and its saved models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import check_regular, load_json, read_text
from boosters_eval.core.terms import the
from boosters_eval.core.text import clean, join_words
from boosters_eval.datasets import materialize
from boosters_eval.datasets.resolve import resolve_dataset
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.compare import read_data_settings
from boosters_eval.programs.benchmark.paper_protocol import canonicalize_native, list_thread_names
from boosters_eval.programs.upgrade.workload import SAVED

if TYPE_CHECKING:
    from boosters_eval.datasets import Stored
    from boosters_eval.programs.upgrade.request import UpgradeRequest

_NAMED = 5  # files in a sentence
# What is each cell's own, whatever a project says of it.
_OWN = frozenset(
    {
        *("seed", "random_seed", "random_state", "num_class", "num_classes", "classes_count"),
        *("verbose", "verbosity", "verbose_eval", "silent", "logging_level", "allow_writing_files"),
        *("device", "device_type", "task_type", "devices", "gpu_id", "predictor"),
    }
)
_STOPPING = frozenset(
    {"early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change", "od_wait"}
)
# What the adapters look at by its canonical name; any other is passed as it is spelt, so that a rename shows.
_READ = frozenset({"num_boost_round", "num_iterations", "iterations", "objective", "loss_function"})
# What an objective is for; of any other nothing is known.
_OBJECTIVES: tuple[tuple[str, frozenset[Task]], ...] = (
    (r"rank|ndcg|^rank:|pair|query", frozenset({Task.RANKING})),
    (r"multi|softmax|ova|onevsall", frozenset({Task.MULTICLASS})),
    (r"^log_loss$", frozenset({Task.BINARY, Task.MULTICLASS})),
    (r"^binary|^logloss", frozenset({Task.BINARY})),
    (r"logistic|entropy|xent", frozenset({Task.BINARY, Task.REGRESSION})),
    (r"^(reg|count):|^(regression|l1|l2|rmse|mse|mae|mape|poisson|gamma|tweedie|quantile|huber|fair)|error$|^expectile|cosh",
     frozenset({Task.REGRESSION})),
)  # fmt: skip
# What every model that a library writes as text has in it: others have the same endings.
_SIGNS = {
    "xgboost": b'"learner"',
    "lightgbm": b"num_tree_per_iteration=",
    "catboost": b'"model_info"',
    "boosters": b'"model_type"',
}
_TEXT = (".json", ".txt", ".lgb")


@dataclass(frozen=True)
class Project:
    """The parameters of a project, the tasks that they are for, and its models by their paths in their folder."""

    native: Mapping[str, Any] | None = None  # None: it brings none
    stopping: int | None = None  # the rounds without gain after which it stops
    objective: str = ""
    tasks: frozenset[Task] = frozenset(Task)
    models: Mapping[str, Path] = field(default_factory=dict)
    rows: Stored | None = None  # that these are asked about
    notes: tuple[str, ...] = ()


def read_project(request: UpgradeRequest, library: str) -> Project:
    models, rows, notes = _find_models(request, library)
    if request.params is None:
        return Project(models=models, rows=rows, notes=notes)
    given = _read_params(request.params)
    own = _OWN | list_thread_names(library)
    left_out = [name for name, value in given.items() if name in own or (name == "tree_method" and "gpu" in str(value))]
    kept = {name: value for name, value in given.items() if name not in left_out}
    stopping = None
    if library != "sklearn":  # which holds out its own rows
        stopping = next((kept.pop(name) for name in list(kept) if name in _STOPPING), None) or None
        if stopping is not None and (isinstance(stopping, bool) or not isinstance(stopping, int) or stopping < 1):
            raise ConfigError(f"{the('params')} must stop early after a count of rounds. Got {stopping!r} instead.")
    canonical = canonicalize_native(library, kept)
    native = {
        name if name in _READ else spelt: value for (name, value), spelt in zip(canonical.items(), kept, strict=True)
    }
    if native.get("objective") == "multi:softmax":  # the same model, asked for probabilities instead of labels
        native["objective"] = "multi:softprob"
    objective = next((str(native[name]) for name in ("objective", "loss_function", "loss") if name in native), "")
    if left_out:
        words = join_words(f"'{name}'" for name in left_out)
        notes = (
            *notes,
            f"Left out of the parameters, since each cell has its own seed, one thread, and no output: {words}.",
        )
    return Project(native, stopping, objective, find_tasks(objective), models, rows, notes)


def find_tasks(objective: str) -> frozenset[Task]:
    """What an objective can be trained on, as far as its name tells."""
    words = objective.partition(":")[0] if objective[:1].isupper() else objective  # CatBoost's have parameters
    found = (tasks for pattern, tasks in _OBJECTIVES if re.search(pattern, words, re.IGNORECASE))
    return next(found, frozenset(Task)) if objective else frozenset(Task)


def _read_params(params: Path | Mapping[str, Any]) -> Mapping[str, Any]:
    given = params if isinstance(params, Mapping) else load_json(read_text(Path(params)), str(params))
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError(f"{the('params')} must be a JSON object of names and values. Got {json.dumps(given):.60}.")
    try:
        json.dumps(dict(given), allow_nan=False)
    except (TypeError, ValueError):
        raise ConfigError(f"{the('params')} must have values that JSON has. Got {given!r:.200} instead.") from None
    return given


def _find_models(request: UpgradeRequest, library: str) -> tuple[dict[str, Path], Stored | None, tuple[str, ...]]:
    """The saved models of the user, the rows, and what is no model that can be opened."""
    if request.models is None or request.rows is None:
        return {}, None, ()
    if library not in SAVED:
        raise ConfigError(f"{the('models')} cannot be used with {library}, whose models are saved by pickle alone.")
    endings = SAVED[library][0]
    files = sorted(path for path in request.models.rglob("*") if path.is_file())
    names = {path: clean(str(path.relative_to(request.models))) for path in files}
    found = {names[path]: path for path in files if path.suffix.lower() in endings and _is_model(path, library)}
    if not found:
        known = join_words(endings, "or")
        raise ConfigError(f"{the('models')} must be a folder with models of {library} ({known}). Got none instead.")
    dataset = resolve_dataset(request.rows, request.task, read_data_settings(request))
    left_out = join_words((names[path] for path in files if names[path] not in found), most=_NAMED)
    note = (f"Left out as no model of {library} in a format of its own: {left_out}.",) if left_out else ()
    return found, materialize(dataset), note


def _is_model(path: Path, library: str) -> bool:
    """Whether a file is a model of this library, as far as its text tells."""
    if path.suffix.lower() not in _TEXT:
        return True
    check_regular(path)
    content = path.read_bytes()
    return not content or _SIGNS[library] in content  # an empty file was to be one
