"""A library that learns a little, in versions that differ as a test plants it: wheels, and its runner."""

from __future__ import annotations

from toys import write_wheel

RUNNER = '''
import numpy as np
from boosters_eval.runners.base import ModelFacts, Runner, Translation


ORIGINS = {"rounds": "n_estimators", "outputs": "objective", "seed": "seed"}


class PlantedRunner(Runner):
    """Steps along one column after the other."""

    name = "planted"
    module = "plantedbooster"
    distributions = ("plantedbooster",)
    install = "plantedbooster"

    @classmethod
    def unsupported(cls, request):
        return None if request.booster_type.value == "gbdt" else "it has no other booster"

    @classmethod
    def translate(cls, request):
        outputs = request.n_classes if request.task.value == "multiclass" else max(1, len(request.quantiles))
        native = {"rounds": request.training.n_estimators, "outputs": outputs, "seed": request.seed}
        if request.n_threads > 1:
            native["n_threads"] = request.n_threads
        return Translation(request, native, origins={**dict.fromkeys(native, "n_threads"), **ORIGINS})

    @classmethod
    def build(cls, translation, data):
        return data

    @classmethod
    def fit(cls, translation, dataset):
        import plantedbooster

        task, native = translation.request.task.value, dict(translation.native)
        return plantedbooster.train(task, dataset.x, dataset.y, dataset.weights, **native)

    @classmethod
    def predict(cls, translation, model, x):
        import plantedbooster

        said = plantedbooster.predict(model, x)
        return said if translation.request.task.value in ("multiclass", "quantile") else said[:, 0]

    @classmethod
    def inspect(cls, model):
        return ModelFacts(n_bytes=len(repr(model)))

    @classmethod
    def effective(cls, model):
        return {"step": model[-1], "rounds": len(model[-2])}
'''

LIBRARY = """
import itertools
import os
import warnings

import numpy as np

FEWER, BROKEN, STARVED, OFF = {fewer!r}, {broken!r}, {starved!r}, {off!r}
CHANCE, RACE, SAYS, STEP = {chance!r}, {race!r}, {says!r}, {step!r}
_count = itertools.count()


def train(task, x, y, weights, rounds, outputs, seed, n_threads=1, step=STEP, **others):
    if task in STARVED:
        raise MemoryError("another program had it all")
    if task in BROKEN:
        raise ValueError(f"{{task}} is no longer supported")
    if others:
        raise TypeError(f"train() got an unexpected keyword argument {{min(others)!r}}")
    if SAYS:
        warnings.warn(SAYS, UserWarning)
    z, w = np.nan_to_num(np.asarray(x, dtype=np.float64)), np.ones(len(y)) if weights is None else weights
    target = np.stack([y == label for label in range(outputs)], axis=1) if task == "multiclass" else y[:, None]
    target = np.broadcast_to(np.asarray(target, dtype=np.float64), (len(y), outputs))
    center, scale = z.mean(axis=0), z.std(axis=0) + 1e-9
    z = (z - center) / scale
    base = (w @ target) / w.sum()
    said, steps = np.tile(base, (len(y), 1)), []
    for turn in range(rounds - FEWER.get(task, 0)):
        column = (turn + seed) % z.shape[1]
        taken = step * ((w * z[:, column]) @ (target - said)) / (w @ (z[:, column] ** 2) + 1e-9)
        said = said + z[:, [column]] * taken
        steps.append((column, taken))
    by_chance = task in CHANCE or (task in RACE and n_threads > 1)
    nudge = OFF + (int.from_bytes(os.urandom(2)) / 65536 if by_chance else 0.0)
    return task, base + nudge, center, scale, steps, step


def predict(model, x):
    task, base, center, scale, steps, _ = model
    z = (np.nan_to_num(np.asarray(x, dtype=np.float64)) - center) / scale
    said = np.tile(base, (len(z), 1))
    for column, step in steps:
        said = said + z[:, [column]] * step
    if task == "binary":
        said = np.clip(said, 0.01, 0.99)
    if task == "multiclass":
        said = np.clip(said, 0.01, None)
        said = said / said.sum(axis=1, keepdims=True)
    return said
"""


def write_planted_runner(folder):
    """The library's runner in a file; what it is named by."""
    (folder / "planted_runner.py").write_text(RUNNER)
    return f"{folder}/planted_runner.py:PlantedRunner"


def write_planted(folder, version="1.0", **planted):
    """A version: by task how many rounds fewer it trains, where it fails, what is added, and where chance decides.

    `race` are the tasks in which chance decides on several threads, `starved` those that get no memory, and `step` is
    the default of a parameter.
    """
    nothing = {"fewer": {}, "off": 0.0, "says": "", "step": 0.3}
    tasks = {name: tuple(planted.get(name, ())) for name in ("broken", "starved", "chance", "race")}
    text = LIBRARY.format(**(nothing | planted | tasks))
    return write_wheel(folder, version, name="plantedbooster", package="plantedbooster", text=text)
