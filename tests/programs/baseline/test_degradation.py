"""Does quick see what it is for? Real models of the quick suite, with 5 % of quality taken from their predictions."""

import numpy as np
import pytest

import factories
from boosters_eval import prepare_suite
from boosters_eval.cli.app import run
from boosters_eval.metrics import compute_metrics
from boosters_eval.programs.baseline.model import load_baseline, save_baseline
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.spec import model_seed

TRIES = 20
LOSS = 1.05


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


@pytest.fixture(scope="module")
def predicted():
    """Every cell of the quick suite for boosters, with what its model predicts for the held-out rows."""
    from boosters_eval.datasets import open_stored, split_rows
    from boosters_eval.runners import RUNNERS
    from boosters_eval.runners.base import TrainData

    prepared = prepare_suite("quick", libraries=["boosters"])
    runner, cells = RUNNERS["boosters"], []
    for cell in prepared.plan.cells:
        table = open_stored(prepared.inputs.stored[cell.spec.dataset].path)
        split = split_rows(table, cell.spec.task, cell.spec.split, *cell.repeat)
        data = TrainData(np.ascontiguousarray(table.x[split.train]), np.asarray(table.y[split.train]))
        translation = runner.translate(cell.spec.request(model_seed(cell)))
        model = runner.fit(translation, runner.build(translation, data))
        predictions = runner.predict(translation, model, np.ascontiguousarray(table.x[split.valid]))
        cells.append((cell, split, np.asarray(table.y[split.valid]), np.asarray(predictions, dtype=np.float64)))
    return cells


def scores(cell, labels, predictions):
    return compute_metrics(cell.spec.task, labels, predictions, cell.spec.n_classes)


def worsened(cell, labels, predictions, rng):
    """Predictions mixed with just so much noise that the primary metric is 5 % worse on these rows."""
    target = LOSS * scores(cell, labels, predictions)[cell.spec.primary_metric]
    if cell.spec.task.is_classification:
        noise = rng.uniform(size=len(labels))
        mix = lambda weight: (1 - weight) * predictions + weight * noise  # noqa: E731 (one of two)
    else:
        noise = rng.normal(size=len(labels))
        mix = lambda weight: predictions + weight * noise  # noqa: E731 (the other)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        value = scores(cell, labels, mix(middle))[cell.spec.primary_metric]
        low, high = (middle, high) if value < target else (low, middle)
    return mix(high)


def collected(cells, change):
    results = []
    for cell, split, labels, predictions in cells:
        changed = change(cell, labels, predictions)
        results.append(
            factories.result(
                cell.spec.name,
                cell.target.name,
                cell.repeat.seed,
                task=cell.spec.task,
                metrics=scores(cell, labels, changed),
                metric=cell.spec.primary_metric,
                n_train=len(split.train),
                n_valid=len(split.valid),
                split_digest=split.digest,
                data_digest=cell.spec.data_digest,
            )
        )
    return factories.collection(results, suite="quick")


@pytest.fixture(scope="module")
def tries(predicted, tmp_path_factory):
    """A file of results per try, each 5 % worse in its own way."""
    folder = tmp_path_factory.mktemp("tries")
    for attempt in range(TRIES):
        rng = np.random.default_rng(attempt)
        worse = collected(predicted, lambda cell, labels, p, rng=rng: worsened(cell, labels, p, rng))
        worse.to_json(folder / f"{attempt}.json")
    return sorted(folder.iterdir())


@pytest.mark.parametrize("options", [(), ("--statistical", "--libraries-under-test", "boosters")])
def test_five_percent_are_caught_in_twenty_of_twenty_tries(predicted, tries, tmp_path, capsys, options):
    base = tmp_path / "base.json"
    save_baseline(make_baseline(collected(predicted, lambda cell, labels, p: p)), base)
    caught = 0
    for now in tries:
        code = run(["baseline", "check", str(base), "--results", str(now), "--quiet", *options])
        caught += code == 1
        assert "california/gbdt boosters" in capsys.readouterr().out
    assert caught == TRIES


def test_half_a_percent_is_not_an_alarm(predicted, tmp_path, capsys):
    base, now = tmp_path / "base.json", tmp_path / "now.json"
    original = collected(predicted, lambda cell, labels, p: p)
    save_baseline(make_baseline(original), base)
    original.results = [
        r.model_copy(update={"metrics": {name: value * 1.005 for name, value in r.metrics.items()}})
        for r in original.results
    ]
    original.to_json(now)
    assert run(["baseline", "check", str(base), "--results", str(now), "--quiet"]) == 0


@pytest.mark.slow
def test_twenty_unchanged_repetitions_of_quick_raise_no_alarm(tmp_path, capsys):
    base = tmp_path / "base.json"
    assert run(["baseline", "record", str(base), "--suite", "quick", "--quiet"]) == 0
    assert len(load_baseline(base).results) == 10
    for attempt in range(TRIES):
        code = run(["baseline", "check", str(base), "--quiet", "--statistical", "--jobs", str(1 + attempt % 2)])
        assert (attempt, code, capsys.readouterr().out) == (
            attempt,
            0,
            f"✅ No regression against {base}: 10 pairs compared (tolerance 2 %, paired test)\n",
        )
