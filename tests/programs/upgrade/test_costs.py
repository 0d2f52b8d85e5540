"""Times and sizes of one version over another's: told apart only where more than chance tells them apart."""

from types import SimpleNamespace

import numpy as np
import pytest

from boosters_eval.programs.upgrade.judge import weigh_costs

CELLS, SEEDS = 24, 3


def measured(rng, *, slower=1.0, noise=0.15, bias=0.01, fair=True):
    """Fits of both versions: each cell has its own time, each fit its noise, and each process a bias of its own."""
    results = []
    for cell in range(CELLS):
        usual = np.exp(rng.normal(-2, 1))
        for seed in range(SEEDS):
            for side in ("old", "new"):
                factor = (slower if side == "new" else 1.0) * np.exp(rng.normal(0, bias))
                times = usual * factor * np.exp(rng.normal(0, noise, 3))
                results.append(
                    SimpleNamespace(
                        config_name=f"cell {cell}",
                        repeat=seed,
                        library=side,
                        fairly_timed=fair,
                        train_time_s=times[0],
                        predict_time_s=times[1] / 10,
                        peak_memory_mb=10 * times[2] / usual,
                        model_size_mb=usual,
                    )
                )
    return SimpleNamespace(results=results)


def test_the_same_version_is_not_told_apart_in_at_least_90_of_100_tries():
    rng = np.random.default_rng(5)
    tries = [any(cost.told_apart for cost in weigh_costs(measured(rng))) for _ in range(200)]
    assert sum(tries) <= 20


def test_a_version_that_is_a_quarter_slower_is_told_apart():
    costs = {cost.quantity: cost for cost in weigh_costs(measured(np.random.default_rng(6), slower=1.25))}
    found = costs["training time"]
    assert found.told_apart
    assert found.low < 1.25 < found.high
    assert found.low > 1
    assert (costs["model size"].ratio, costs["model size"].told_apart) == (pytest.approx(1.0), False)


def test_what_all_fits_of_one_process_share_is_not_told_apart():
    tries = [next(weigh_costs(measured(np.random.default_rng(at), slower=1.04, noise=0.03))) for at in range(50)]
    assert sum(cost.low > 1 for cost in tries) > 25  # such a bias is shown, though it is none of the version's
    assert not any(cost.told_apart for cost in tries)


def test_a_shown_difference_that_does_not_matter_is_not_told_apart():
    found = next(weigh_costs(measured(np.random.default_rng(7), slower=1.02, noise=0.001, bias=0.0001)))
    assert found.low > 1
    assert not found.told_apart


def test_times_of_a_busy_machine_are_not_judged():
    costs = {cost.quantity: cost for cost in weigh_costs(measured(np.random.default_rng(8), fair=False))}
    assert costs["training time"].ratio is None
    assert costs["training time"].reason == "other programs used the processors"
    assert costs["memory"].ratio is not None
