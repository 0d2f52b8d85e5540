"""A comparison in which every status occurs, with names that are markup."""

import pytest

from boosters_eval.programs.paper.judge import compare_results
from factories import measured, paper, paper_results

GROUP = "Default <hyperparameters>"


def _result(model, dataset, metrics, **changes):
    return {"model": model, "dataset": dataset, "metrics": metrics, **changes}


@pytest.fixture(scope="package")
def comparison():
    """Two tables of a paper: quality on two data sets, and costs of which some could not be measured."""
    quality = {
        "id": "Table 4",
        "title": "Results of *boosting*",
        "results": [
            _result("XGBoost", "Adult", {"accuracy": "0.874"}, group=GROUP),
            _result("XGBoost", "California", {"rmse": "0.462"}, group=GROUP),
            _result("CatBoost", "California", {"rmse": "0.430", "rmse_std": "0.0007"}, group=GROUP),
            _result("XGBoost", "California", {"rmse": "0.433"}, group="Tuned", conditions={"trees": 2000}),
        ],
        "tolerance": {"rmse_relative": 0.02},
        "std_over": "seeds",
        "hardware": "NVIDIA V100",
    }
    costs = {
        "id": "Table 5",
        "title": "Costs",
        "results": [
            _result("XGBoost", "Adult", {"Train time (s)": "12.5", "Params (M)": "1.2"}, notes=["Without <loading>."]),
            _result("CatBoost", "Adult", {"Train time (s)": "30.1", "Params (M)": "3.0"}),
            _result("LightGBM", "Adult", {"Train time (s)": "5.4"}),
        ],
        "directions": {"Train time (s)": "lower"},
    }
    spec = paper(
        [quality, costs],
        paper="Revisiting <b>Models</b>",
        arxiv_id="2106.11959",
        conditions={"versions": {"xgboost": "1.3"}, "seeds": 15},
        reproduction_targets={"primary": [{"table": "Table 4"}], "secondary": [{"table": "Table 5"}]},
    )
    xgboost = {"versions": {"xgboost": "3.1.1"}}
    crash = {"status": "failed", "reason": "1 of 3 repeats failed: killed by SIGSEGV.", "planned": 3}
    absent = {"status": "not_runnable", "reason": "The library 'lightgbm' is not installed."}
    results = paper_results(
        measured({"accuracy": (0.8733, 0.8738, 0.8743)}, row=f"{GROUP} / XGBoost", **xgboost),
        measured({"rmse": (0.4641, 0.4711, 0.4766)}, row=f"{GROUP} / XGBoost", dataset="California", **xgboost),
        measured({"rmse": (0.4352, 0.4440, 0.4528)}, row=f"{GROUP} / CatBoost", dataset="California"),
        measured({"rmse": (0.5, 0.51, 0.52)}, row="Tuned / XGBoost", dataset="California", conditions={"trees": "50"}),
        measured({"Train time (s)": (10.1, 10.2, 10.3), "Params (M)": (1.2004,) * 3}, table="Table 5", primary=False),
        measured({"Train time (s)": (30.2, 30.4)}, table="Table 5", row="CatBoost", primary=False, **crash),
        measured({}, table="Table 5", row="LightGBM", primary=False, **absent),
        paper=spec.paper,
    )
    return compare_results(spec, results, files=("results/results.json", "results/comparison.yaml"))
