"""What a metric measures, in which unit, and how far off it may be."""

from __future__ import annotations

from decimal import Decimal

import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.paper.specification import PaperTable
from boosters_eval.programs.paper.tolerances import canonicalize, classify_metric, find_tolerance, is_share, parse_unit
from factories import paper_table


def tolerance(metric, unit=None, **own):
    table = PaperTable.model_validate(paper_table({metric: "1"}, tolerance=own))
    kind, known = classify_metric(metric, unit)
    found = find_tolerance(table, metric, kind, known)
    return found.absolute, found.relative


@pytest.mark.parametrize(
    ("metric", "unit", "kind"),
    [
        ("accuracy", None, "accuracy"),
        ("Top-1 (%)", None, "accuracy"),
        ("ROC-AUC", None, "accuracy"),
        ("macro_f1", None, "accuracy"),
        ("mAP@0.5", None, "accuracy"),
        ("passkey retrieval", None, "accuracy"),
        ("win rate", "%", "accuracy"),
        ("Perplexity", None, "perplexity"),
        ("valid_ppl", None, "perplexity"),
        ("train_time_s", None, "speed"),
        ("tokens_per_second", None, "speed"),
        ("inference", "ms", "speed"),
        ("peak_memory_mb", None, "memory"),
        ("checkpoint", "GB", "memory"),
        ("Params (M)", None, "parameters"),
        ("num_params", None, "parameters"),
        ("memory recall", None, "accuracy"),
        ("recall time", None, "speed"),
        ("time to accuracy", None, "speed"),
        ("accuracy (memory)", None, "accuracy"),
        ("Number of parameters", None, "parameters"),
        ("Top-1 error", None, "accuracy"),
        ("Time-series MSE", None, "other"),
        ("MSE of the time series", None, "other"),
        ("rmse", None, "other"),
        ("log loss", None, "other"),
        ("r2", None, "other"),
        ("brier", "%", "other"),  # a share, but an error: half a point of it is a lot
    ],
)
def test_the_kind_of_a_metric_follows_from_its_name_and_unit(metric, unit, kind):
    assert classify_metric(metric, unit)[0] == kind


@pytest.mark.parametrize(
    ("metric", "unit", "absolute", "relative"),
    [
        ("accuracy", "%", "0.5", "0.01"),
        ("accuracy", "fraction", "0.005", "0.01"),  # half a percentage point
        ("perplexity", None, "0.5", "0.03"),
        ("train_time_s", None, None, "0.10"),
        ("memory", "MB", "100", "0.05"),
        ("memory", "GB", "0.1", "0.05"),
        ("memory", None, None, "0.05"),  # 100 of what?
        ("Params (M)", None, "0.001", "0.001"),
        ("params", "1", "1000", "0.001"),
        ("params", None, None, "0.001"),
        ("rmse", None, None, "0.05"),
    ],
)
def test_the_guidelines_are_in_the_unit_of_the_value(metric, unit, absolute, relative):
    assert tolerance(metric, unit) == (absolute and Decimal(absolute), Decimal(relative))


def test_a_table_overrides_both_tolerances_by_stating_either():
    assert tolerance("perplexity", perplexity=0.1) == (Decimal("0.1"), None)
    assert tolerance("perplexity", perplexity_relative=0.02) == (None, Decimal("0.02"))
    assert tolerance("perplexity", perplexity=0.1, perplexity_relative=0.02) == (Decimal("0.1"), Decimal("0.02"))
    assert tolerance("rmse", rmse=0) == (Decimal(0), None)


def test_percent_written_as_a_fraction_and_points_written_for_fractions_are_refused():
    with pytest.raises(ConfigError, match=r"must be a fraction, such as 0.02 for 2 %. Got 2 instead"):
        tolerance("perplexity", perplexity_relative=2)
    with pytest.raises(ConfigError, match=r"half a percentage point is 0.005. Got 0.5 instead"):
        tolerance("accuracy", "fraction", accuracy=0.5)
    assert tolerance("accuracy", "%", accuracy=0.5) == (Decimal("0.5"), None)


def test_only_what_is_at_most_one_by_definition_is_a_share():
    assert all(map(is_share, ("accuracy", "AUC", "brier", "top_k_accuracy", "Top-5", "matthews")))
    assert not any(map(is_share, ("rmse", "r2", "logloss", "win rate", "wer", "train_time_s", "perplexity")))


def test_units_and_metrics_have_more_than_one_spelling():
    assert parse_unit("Seconds") == parse_unit("s")
    assert parse_unit("M", "count").factor == 10**6
    assert parse_unit("m", "time").factor == 60
    assert parse_unit("m").dimension is None  # a metre, for all that is known
    assert [classify_metric(name)[0] for name in ("FLOPs (M)", "MAE (m)")] == ["other", "other"]
    assert parse_unit("bananas").dimension is None
    assert classify_metric("tokens/sec")[1] is None  # a rate is in no unit of time
    assert [canonicalize(name) for name in ("Log loss", "ROC-AUC", "R²", "accuracy (%)", "Mine")] == [
        "logloss",
        "auc_roc",
        "r2",
        "accuracy",
        "mine",
    ]
