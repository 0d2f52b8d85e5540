"""Runs written into a home as the engine writes them, without running anything."""

from __future__ import annotations

import json

from boosters_eval.datasets.config import SplitSpec
from boosters_eval.engine.cell import Build, Failure
from boosters_eval.engine.facts import RunFacts
from boosters_eval.engine.folder import RunFolder
from boosters_eval.engine.plan import CellRef, Plan
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.spec import FitSpec, Timing
from boosters_eval.runners.parameters import BoosterType, Profile, TrainingConfig
from factories import digest, result

SEEDS = (42, 1379, 2716, 4053, 5390, 6727)
MACHINE = {"cpu_model": "Test CPU", "cpu_cores": 2, "cpu_threads": 2, "digest": "aaaa000011112222"}


def fit_spec(dataset="diabetes", **changes):
    """A benchmark of a data set with everything resolved."""
    fields = {
        "name": f"{dataset}/gbdt",
        "dataset": dataset,
        "data_digest": digest(dataset),
        "task": Task.REGRESSION,
        "booster_type": BoosterType.GBDT,
        "training": TrainingConfig(n_estimators=5, max_depth=3),
        "profile": Profile.PARITY,
        "variant": None,
        "n_classes": None,
        "quantiles": (),
        "categorical": (),
        "has_missing": False,
        "weighted": False,
        "max_categories": 0,
        "split": SplitSpec(),
        "metrics": (),
        "primary_metric": "rmse",
        "timing": Timing(),
    }
    return FitSpec(**{**fields, **changes})


def written_run(
    home,
    day=1,
    value=0.5,
    *,
    step=0.001,
    version="1.0",
    libraries=("boosters",),
    seeds=SEEDS,
    machine=MACHINE,
    failed=(),
    sealed=True,
    timed=False,
    facts=None,
    place=None,
    **changes,
):
    """A run of one benchmark on a day of 2026, whose scores are `value` plus a step per seed; returns its folder.

    `place` gives the machine of each seed's cells, if they name it.
    """
    spec = fit_spec(timing=Timing(timed=timed))
    builds = {"fit": {name: Build(version=version, digest=digest(name, version)[:16]) for name in libraries}}
    refs = tuple(CellRef(0, name, seed, None) for name in libraries for seed in seeds)
    plan = Plan(name="nightly", specs=(spec,), refs=refs, builds=builds)
    folder = RunFolder.of(plan, home)
    book, attempt = folder.open(new=True)
    known = {
        "started_at": f"2026-01-{day:02d}T12:00:00+00:00",
        "machine": machine,
        "targets": {name: build.model_dump() for name, build in builds["fit"].items()},
        "git_sha": f"c0ffee{day}",
        "git_branch": "main",
        "git_dirty": False,
        "kind": "benchmark",
    }
    folder.write_facts(attempt, RunFacts.model_validate({**known, **(facts or {})}))
    book.begin({"run_id": plan.run_id, "attempt": attempt, "cells": len(refs), **folder.digests(attempt)})
    for index, ref in enumerate(refs):
        if ref.seed in failed:
            outcome = Failure(spec=spec.name, target=ref.target, seed=ref.seed, error_type="Crash", error_message="no")
        else:
            outcome = result(
                spec.name, ref.target, ref.seed, value + step * (index % len(seeds)), library_version=version, **changes
            )
        node = place(ref.seed) if place else None
        if node is not None:
            book.introduce({node.digest: node})
            outcome = outcome.model_copy(update={"machine": node.digest})
        book.append(outcome, "fit")
    if sealed:
        book.seal(len(refs))
    book.close()
    return folder


def results_file(path, folder, **changes):
    """The file of `--format json` of a run, with other facts if they are given."""
    from boosters_eval.programs.benchmark.runs import collect

    content = json.loads(collect(folder.load()).to_json())
    content["metadata"]["environment"] |= changes
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
