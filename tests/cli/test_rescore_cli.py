"""`rescore` on the command line."""

import re

from boosters_eval import compare
from tiny import FEW, shared_pool


def test_a_run_is_judged_by_another_metric_and_checked_against_a_competitor(boosters_eval):
    compare("diabetes", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
    done = boosters_eval("rescore", "last", "--metric", "mae")
    assert done.returncode == 0
    assert re.search(r"\| Library +\| MAE", done.stdout)
    assert "sklearn" in boosters_eval("rescore", "last", "-m", "mae", "--against", "sklearn").stdout


def test_a_wrong_metric_or_run_is_a_sentence(boosters_eval):
    compare("diabetes", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
    assert "Did you mean 'mae'?" in boosters_eval("rescore", "last", "-m", "maee").stderr
    assert boosters_eval("rescore", "last").returncode == 3
    assert boosters_eval("rescore", "nothing", "-m", "mae").returncode == 3
