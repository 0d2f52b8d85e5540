"""Write a home of many runs in the true format, with chained journals, without running anything."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from boosters_eval.core.files import FORMAT
from boosters_eval.core.machine import MachineInfo
from boosters_eval.engine.plain import START, digest_line
from boosters_eval.engine.plan import CellRef, Plan
from boosters_eval.runners.parameters import TrainingConfig

DATASETS, LIBRARIES, SEEDS = ("california", "adult", "wine"), ("xgboost", "lightgbm"), (42, 1379, 2716, 4053, 5390)
BEGAN = datetime(2020, 1, 1, tzinfo=UTC)


def digest(*content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


def spec(dataset: str) -> dict[str, object]:
    return {
        "workload": "fit", "name": f"{dataset}/gbdt", "n_threads": 1, "alone": False, "dataset": dataset,
        "data_digest": digest(dataset), "task": "regression", "booster_type": "gbdt",
        "training": TrainingConfig().model_dump(mode="json"), "profile": "parity", "variant": None, "n_classes": None,
        "quantiles": [], "categorical": [], "has_missing": False, "weighted": False, "max_categories": 0,
        "split": {"validation_fraction": 0.2, "folds": None}, "metrics": [], "primary_metric": "rmse",
        "timing": {"timed": False, "warmup": 0, "predict_runs": 1, "memory": False}, "user_metrics": [],
    }  # fmt: skip


def write(root: Path, number: int, machine: dict[str, object]) -> None:
    """One finished run of 30 cells; each has builds of its own, as in a project that is built every day."""
    draw = random.Random(number)  # noqa: S311 (numbers to look at)
    builds = {"fit": {name: {"version": f"1.{number}", "digest": digest(name, number)[:16]} for name in LIBRARIES}}
    specs = [spec(dataset) for dataset in DATASETS]
    refs = [CellRef(i, name, seed, None) for name in LIBRARIES for i in range(len(specs)) for seed in SEEDS]
    content = {
        "schema_version": FORMAT,
        "name": "nightly",
        "specs": specs,
        "refs": refs,
        "builds": builds,
        "excluded": [],
    }
    plan = Plan.model_validate(content)
    folder = root / plan.run_id
    folder.mkdir()
    plan_text = plan.model_dump_json(indent=1) + "\n"
    facts = {
        "schema_version": FORMAT, "started_at": (BEGAN + timedelta(hours=5 * number)).isoformat(timespec="seconds"),
        "boosters_eval": "1.0.0", "python": "3.12.1", "git_sha": digest("commit", number)[:7], "git_branch": "main",
        "git_dirty": False, "machine": machine, "targets": builds["fit"], "jobs": 2, "executor": "local",
        "start_method": "fork", "command": ["run", "nightly"], "kind": "benchmark",
    }  # fmt: skip
    lines: list[bytes] = []

    def add(head: str, body: object) -> None:
        before = digest_line(lines[-1]) if lines else START
        text = body if isinstance(body, str) else json.dumps(body)
        lines.append(f'{{"prev":"{before}",{head}:{text}}}\n'.encode())

    beside = {
        "plan": hashlib.sha256(plan_text.encode()).hexdigest()[:32],
        "facts": hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32],
    }
    add('"begin"', {"schema_version": FORMAT, "run_id": plan.run_id, "attempt": 1, "cells": len(refs), **beside})
    common = {}
    for i, name, seed, _ in refs:
        dataset = DATASETS[i]
        if (i, name) not in common:
            params = {"objective": "reg", "eta": 0.1, "max_depth": 6, "seed": None, "nthread": 1}
            shared = {"native_params": params, "marks": [], "data_digest": digest(dataset), "seeded": ["seed"]}
            text = json.dumps(shared, separators=(",", ":"))
            common[i, name] = digest_line(text.encode())[:16]
            add('"of":"fit","common"', text)
        took = draw.lognormvariate(-3, 0.1)
        result = {
            "config_name": f"{dataset}/gbdt", "library": name, "seed": seed, "task": "regression",
            "dataset_name": dataset, "metrics": {
                "rmse": 0.5 + draw.gauss(0, 0.01), "mae": 0.4 + draw.gauss(0, 0.01), "r2": 0.8 + draw.gauss(0, 0.01)
            },
            "primary_metric": "rmse", "train_time_s": took, "build_time_s": took / 4, "fit_time_s": took * 0.75,
            "predict_time_s": took / 10, "cpu_time_s": took, "model_size_mb": 0.5, "n_trees_trained": 100,
            "n_leaves_total": 6400, "library_version": f"1.{number}", "n_train": 800, "n_valid": 200,
            "split_digest": digest(dataset, seed), "predictions_digest": digest(number, i, name, seed),
            "model_seed": seed * 7, "threads_observed": 1, "start_method": "fork",
        }  # fmt: skip
        add(f'"of":"fit","with":"{common[i, name]}","result"', result)
    add('"end"', {"outcomes": len(refs)})
    (folder / "plan.json").write_text(plan_text)
    (folder / "environment.json").write_text(json.dumps(facts, indent=1) + "\n")
    (folder / "journal.jsonl").write_bytes(b"".join(lines))


def main() -> None:
    home, count = Path(sys.argv[1]), int(sys.argv[2])
    root = home / "runs"
    root.mkdir(parents=True)
    machine = MachineInfo.collect()
    known = {**machine.model_dump(), "digest": machine.digest}
    for number in range(count):
        write(root, number, known)


if __name__ == "__main__":
    main()
