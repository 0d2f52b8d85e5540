"""Explanations for tests, made of arrays instead of models: a test names only what its story is about."""

from __future__ import annotations

import numpy as np

from boosters_eval.engine.artifacts import save_array
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.importances.records import Additivity, Explanation, FeatureUnit, MeasuredKind, Probe
from boosters_eval.programs.importances.results import Explanations
from factories import result

NAMES = ("income", "age", "rooms", "noise", "latitude")
WEIGHTS = np.array([3.0, 1.0, 0.5, 0.0, 2.0])
LIBRARIES = ("alpha", "beta", "gamma")
SOUND = Additivity(error=1e-13, scale=5.0, n_rows=10)


def rows_of(seed, total=400, n=120):
    return np.sort(np.random.default_rng(seed).choice(total, n, replace=False))


def features(total=400, columns=5):
    return np.random.default_rng(7).normal(size=(total, columns)).astype(np.float32)


class Cells:
    """Writes the arrays of linear models whose weights differ a little by library and seed."""

    def __init__(self, folder, *, names=NAMES, weights=WEIGHTS, outputs=1, x=None, n=120, **fields):
        self.folder, self.names, self.outputs, self.fields, self.n = folder, names, outputs, fields, n
        self.weights = np.asarray(weights, dtype=float)
        self.x = features(columns=len(names)) if x is None else x

    def cell(self, library="alpha", seed=1, *, spread=0.05, own=0.0, off=0.0, **changes):
        """`spread` is by seed, `own` by library; `off` is what attributions lack to add up."""
        by_seed = np.random.default_rng([seed, len(library)]).normal(size=len(self.names)) * spread
        by_library = np.random.default_rng(list(library.encode())).normal(size=len(self.names)) * own
        weights = np.where(self.weights == 0, 0, self.weights + by_seed + by_library)
        rows = rows_of(seed, len(self.x), self.n)
        x = self.x[rows]
        shap = np.zeros((len(rows), len(self.names) + 1, self.outputs))
        shap[:, :-1] = (np.nan_to_num(x) * weights)[:, :, None] * np.arange(1, self.outputs + 1)
        shap[:, -1] = 2.0
        raw = shap.sum(axis=1)
        shap[:, 0] += off
        usual = {
            "kinds": {
                "permutation": self.kept(np.abs(weights) + np.arange(3)[:, None] * 1e-3 * (weights != 0)),
                "gain": self.kept(100 * weights**2),
                "split": self.kept(np.round(50 * np.abs(weights))),
                "shap": self.kept(shap),
            },
            "rows": save_array(self.folder, rows),
            "x": save_array(self.folder, x),
            "y": save_array(self.folder, raw[:, 0]),
            "predictions": save_array(self.folder, raw if self.outputs > 1 else raw[:, 0]),
            "raw": save_array(self.folder, raw),
            "n_rows": len(rows),
            "feature_names": self.names,
            "units": tuple(FeatureUnit(name=name, columns=(i,)) for i, name in enumerate(self.names)),
            "permutations": 3,
            "higher_is_better": False,
            "interactions": SOUND,
            "probe": Probe(
                n_rows=100, n_rounds=5, constant=dict.fromkeys(("permutation", "gain", "split", "shap"), 0.0),
                additivity=SOUND,
            ),
            "n_train": 320,
            "n_valid": 80,
        }  # fmt: skip
        base = result("toy/gbdt", library, seed, 0.5).model_dump()
        return Explanation(**{**base, **usual, **self.fields, **changes})

    def kept(self, array):
        return MeasuredKind(array=save_array(self.folder, np.asarray(array, dtype=float)))

    def run(self, *cells, errors=(), **options):
        return Explanations(ResultCollection(cells, errors, **options), self.folder)

    def grid(self, libraries=LIBRARIES, seeds=5, broken=(), **changes):
        """Every library and seed; of the broken ones, attributions do not add up."""
        return self.run(
            *(
                self.cell(name, seed, off=7.0 if name in broken else 0.0, **changes)
                for name in libraries
                for seed in range(1, seeds + 1)
            ),
            run_id="0" * 16,
        )
