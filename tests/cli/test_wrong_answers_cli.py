"""Confident wrong answers that were printed once, each tried again as a user would."""

import json

import numpy as np
import pandas as pd


def compare(boosters_eval, *arguments):
    """The results of a comparison, by library: what each scored on every split."""
    done = boosters_eval("compare", *arguments, "-f", "json", "-q", check=0)
    results = json.loads(done.stdout)["results"]
    return {name: [r for r in results if r["library"] == name] for name in {r["library"] for r in results}}


def mean(results, metric="rmse"):
    return float(np.mean([result["metrics"][metric] for result in results]))


def cars(rows=398):
    """Cars whose names hardly ever repeat and say nothing that the weight does not say."""
    rng = np.random.default_rng(0)
    model = rng.integers(0, 600, rows)
    weight = rng.normal(3000, 800, rows).clip(1600, 5200)
    year = rng.integers(70, 83, rows)
    mpg = 46 - 0.0075 * weight + 0.6 * (year - 76) + rng.normal(0, 2.2, rows)
    return pd.DataFrame(
        {
            "Name": [f"maker {m % 26} model {m}" for m in model],
            "Cylinders": np.where(weight < 2500, 4, np.where(weight < 3400, 6, 8)),
            "Horsepower": (weight / 30 + rng.normal(0, 15, rows)).round(),
            "Weight": weight.round(),
            "Year": year,
            "mpg": mpg.round(1),
        }
    )


def test_a_near_unique_text_column_costs_no_library_more_than_its_own_defaults_would(place, boosters_eval):
    cars().to_csv("cars.csv", index=False)
    command = ("-d", "cars.csv:mpg", "-l", "lightgbm", "xgboost", "-s", "5")
    with_names = compare(boosters_eval, *command)
    without = compare(boosters_eval, *command, "--drop", "Name")
    assert mean(with_names["lightgbm"]) < 1.1 * mean(without["lightgbm"])
    marks = {mark["parameter"]: mark for mark in with_names["lightgbm"][0]["marks"]}
    assert marks["categorical"]["kind"] == "own"
    assert "min_data_per_group" in marks["categorical"]["reason"]
    assert "min_data_per_group" not in with_names["lightgbm"][0]["native_params"]
