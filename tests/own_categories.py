"""Tables with categories: near-unique, rare, missing, many, noise or crossed; and LightGBM left alone with them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from boosters_eval.runners.lightgbm_runner import LightGBMRunner


class OwnCategories(LightGBMRunner):
    """By meaning, except for what LightGBM's own defaults do with rare categories: they share a bin."""

    name = "own_categories"

    @classmethod
    def translate(cls, request):
        translation = LightGBMRunner.translate(request)
        translation.native["min_data_in_bin"] = 3
        return translation


def _labels(codes):
    return [f"k{code}" for code in codes]


def near_unique(rng, rows=400):
    weight, year = rng.normal(3000, 800, rows).clip(1600, 5200), rng.integers(70, 83, rows)
    y = 46 - 0.0075 * weight + 0.6 * (year - 76) + rng.normal(0, 2.2, rows)
    return {"name": _labels(rng.integers(0, 600, rows)), "weight": weight, "year": year, "y": y}


def rare(rng, rows=500):
    kind, x = rng.zipf(1.5, rows).clip(max=120), rng.normal(size=rows)
    return {"kind": _labels(kind), "x": x, "y": x + rng.normal(size=121)[kind] + rng.normal(0, 0.5, rows)}


def missing(rng, rows=500):
    kind, x, lost = rng.integers(0, 12, rows), rng.normal(size=rows), rng.random(rows) < 0.3
    y = x + rng.normal(size=12)[kind] + 0.8 * lost + rng.normal(0, 0.5, rows)
    return {"kind": pd.Series(_labels(kind)).mask(lost), "x": x, "y": y}


def many(rng, rows=500):
    shop, x = rng.integers(0, 60, rows), rng.normal(size=rows)
    return {"shop": _labels(shop), "x": x, "y": 2 * rng.normal(size=60)[shop] + x + rng.normal(0, 0.5, rows)}


def noise(rng, rows=500):
    a, b = rng.normal(size=(2, rows))
    return {"tag": _labels(rng.integers(0, 150, rows)), "a": a, "b": b, "y": a * b + rng.normal(0, 0.5, rows)}


def crossed(rng, rows=500):
    a, b = rng.integers(0, 8, (2, rows))
    y = rng.normal(size=(8, 8))[a, b] + rng.normal(0, 0.5, rows)
    return {"a": _labels(a), "b": _labels(b), "x": rng.normal(size=rows), "y": y}


TABLES = {
    make.__name__: pd.DataFrame(make(np.random.default_rng(seed)))
    for seed, make in enumerate((near_unique, rare, missing, many, noise, crossed))
}
