"""The 30 fits of the quick suite as a plain script would do them: joblib, two processes, scikit-learn's metrics.

    python benchmarks/_joblib_quick.py FOLDER

The folder holds what a script would have at hand: the two tables, the splits, and each library's own parameters.
"""

import json
import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn import metrics


def fit_boosters(native, x, y, rows):
    import boosters

    native = dict(native)
    threads, objective = native.pop("n_threads"), native.pop("objective")
    native["objective"] = getattr(boosters.Objective, objective)()
    native["growth_strategy"] = getattr(boosters.GrowthStrategy, native["growth_strategy"])
    native["verbosity"] = getattr(boosters.Verbosity, native["verbosity"])
    data = boosters.Dataset(x, y)
    model = boosters.GBDTModel.train(data, config=boosters.GBDTConfig(**native), n_threads=threads)
    return np.asarray(model.predict(boosters.Dataset(rows), n_threads=threads))[:, 0]


def fit_xgboost(native, x, y, rows):
    import xgboost

    native = dict(native)
    rounds, threads = native.pop("num_boost_round"), native["nthread"]
    data = xgboost.QuantileDMatrix(x, label=y, nthread=threads, max_bin=native["max_bin"])
    return xgboost.train(native, data, num_boost_round=rounds, verbose_eval=False).inplace_predict(rows)


def fit_lightgbm(native, x, y, rows):
    import lightgbm

    native = dict(native)
    rounds = native.pop("num_iterations")
    model = lightgbm.train(native, lightgbm.Dataset(x, label=y, params=native), num_boost_round=rounds)
    return model.predict(rows, num_threads=native["num_threads"])


def fit_catboost(native, x, y, rows):
    import catboost

    model = catboost.CatBoost(native).fit(catboost.Pool(x, y, thread_count=native["thread_count"]))
    if native["loss_function"] == "Logloss":
        return model.predict(rows, prediction_type="Probability", thread_count=native["thread_count"])[:, 1]
    return model.predict(rows, thread_count=native["thread_count"])


def fit_sklearn(native, x, y, rows):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if native["loss"] == "log_loss":
        return HistGradientBoostingClassifier(**native).fit(x, y).predict_proba(rows)[:, 1]
    return HistGradientBoostingRegressor(**native).fit(x, y).predict(rows)


def score_regression(y, predicted):
    return {
        "rmse": metrics.root_mean_squared_error(y, predicted),
        "mae": metrics.mean_absolute_error(y, predicted),
        "r2": metrics.r2_score(y, predicted),
    }


def score_binary(y, predicted):
    labels = predicted > 0.5
    return {
        "logloss": metrics.log_loss(y, predicted),
        "accuracy": metrics.accuracy_score(y, labels),
        "auc": metrics.roc_auc_score(y, predicted),
        "f1": metrics.f1_score(y, labels),
        "brier": metrics.brier_score_loss(y, predicted),
    }


FITS = {
    "boosters": fit_boosters,
    "xgboost": fit_xgboost,
    "lightgbm": fit_lightgbm,
    "catboost": fit_catboost,
    "sklearn": fit_sklearn,
}
SCORES = {"regression": score_regression, "binary": score_binary}


def run(cell, folder):
    table = np.load(folder / f"{cell['dataset']}.npz")
    rows = np.load(folder / cell["split"])
    x, y, train, valid = table["x"], table["y"], rows["train"], rows["valid"]
    predicted = FITS[cell["library"]](
        cell["native"], np.ascontiguousarray(x[train]), y[train], np.ascontiguousarray(x[valid])
    )
    return SCORES[cell["task"]](y[valid], predicted)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    cells = json.loads((place / "cells.json").read_text())
    found = Parallel(n_jobs=2)(delayed(run)(cell, place) for cell in cells)
    (place / "found.json").write_text(json.dumps(found))
