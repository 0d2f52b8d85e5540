"""The table itself: complete, readable, keyed by version, and the same in the documentation."""

import ast
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, Mark, Profile, TrainingConfig
from boosters_eval.runners.rules import (
    CANONICAL,
    Edition,
    Rule,
    choose_edition,
    evaluate,
    find_refusal,
    resolve_native,
    translate,
)
from mapping_requests import EDITIONS, IDS, MAPPING, requests

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_mapping.py"


@pytest.mark.parametrize("edition", EDITIONS, ids=IDS)
@given(request=requests)
def test_whatever_is_not_refused_has_a_translation_with_a_reason_for_every_loss(edition, request):
    if find_refusal(edition, request):
        return
    translation = translate(edition, request)
    json.dumps(translation.native, allow_nan=False)
    assert set(translation.origins) == set(translation.native)
    assert all(mark.reason or mark.kind == "exact" for mark in translation.marks)
    names = [mark.parameter for mark in translation.marks]
    assert len(names) == len(set(names))
    assert set(names) <= set(CANONICAL)
    if request.profile is Profile.PARITY:
        used = set(TrainingConfig.model_fields)
        used -= {"max_depth"} if request.training.growth_strategy is GrowthStrategy.LEAFWISE else {"n_leaves"}
        used -= set() if request.training.early_stopping_rounds else {"early_stopping_rounds"}
        if request.booster_type is BoosterType.GBLINEAR:
            used &= {
                "n_estimators",
                "learning_rate",
                "l1",
                "l2",
                "n_threads",
                "seed",
                "early_stopping_rounds",
                "device",
            }
        assert used <= set(names)


@pytest.mark.parametrize("edition", EDITIONS, ids=IDS)
def test_every_rule_is_complete(edition):
    for rule in edition.rules:
        assert rule.parameter in CANONICAL
        assert bool(rule.reason) == (rule.kind != "exact")
        assert not (rule.exact_if and rule.kind == "exact")
    for entry in (*edition.pins, *edition.defaults, *edition.refusals, *edition.nondeterministic):
        assert entry.reason


@pytest.mark.parametrize("editions", MAPPING.values(), ids=MAPPING)
def test_versions_follow_each_other_without_gap_or_overlap(editions):
    assert [edition.until for edition in editions[:-1]] == [edition.since for edition in editions[1:]]


@pytest.mark.parametrize(
    ("library", "version", "since"),
    [
        ("xgboost", "3.0.5", "3.0"),
        ("xgboost", "3.2.0", "3.2"),
        ("xgboost", "3.4.1", "3.4"),
        ("sklearn", "1.6.1", "1.5"),
        ("sklearn", "1.9.1", "1.7"),
        ("lightgbm", "4.7.0.99", "4.3"),
        ("catboost", "1.2.10", "1.2.5"),
        ("xgboost", None, "3.4"),
    ],
)
def test_the_table_is_chosen_by_version(library, version, since):
    edition, mark = choose_edition(MAPPING[library], version)
    assert edition.since == since
    assert mark is None


@pytest.mark.parametrize(("version", "since"), [("2.1.4", "3.0"), ("9.0.0rc1", "3.4")])
def test_a_version_that_was_never_verified_is_marked(version, since):
    edition, mark = choose_edition(MAPPING["xgboost"], version)
    assert edition.since == since
    assert mark.kind == "approximated"
    assert version in mark.reason
    request = FitRequest(Task.BINARY, TrainingConfig())
    assert translate(edition, request, mark).marks[0] == Mark(
        parameter="version", kind="approximated", reason=mark.reason
    )


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_step_of_softmax_is_corrected_by_the_hessian_of_each_library(classes):
    training = TrainingConfig(learning_rate=0.1, l2=1, min_child_weight=2, min_gain=6, l1=3)
    request = FitRequest(Task.MULTICLASS, training, n_classes=classes)
    xgboost = translate(MAPPING["xgboost"][-1], request).native
    assert xgboost["eta"] == pytest.approx(0.2)
    assert (xgboost["lambda"], xgboost["min_child_weight"], xgboost["gamma"], xgboost["alpha"]) == (2, 4, 3, 3)
    lightgbm = translate(MAPPING["lightgbm"][-1], request).native
    c = classes / (classes - 1)
    assert lightgbm["learning_rate"] == pytest.approx(0.1 * c)
    assert lightgbm["lambda_l2"] == pytest.approx(c)
    assert lightgbm["min_sum_hessian_in_leaf"] == pytest.approx(2 * c)
    assert lightgbm["min_gain_to_split"] == pytest.approx(6 / c)
    assert lightgbm["lambda_l1"] == 3
    assert translate(MAPPING["sklearn"][-1], request).native["learning_rate"] == 0.1


def test_the_threads_and_the_seed_are_those_that_the_engine_resolved():
    request = FitRequest(Task.REGRESSION, TrainingConfig(n_threads=-1, seed=1), n_threads=3, seed=7)
    names = {"boosters": ("n_threads", "seed"), "xgboost": ("nthread", "seed"), "lightgbm": ("num_threads", "seed")}
    for library, (threads, seed) in names.items():
        native = translate(MAPPING[library][-1], request).native
        assert (native[threads], native[seed]) == (3, 7)


@pytest.mark.parametrize(("task", "name"), [(Task.MULTICLASS, "n_classes"), (Task.QUANTILE, "quantiles")])
def test_what_decides_the_shape_of_a_model_must_be_known(task, name):
    with pytest.raises(ConfigError, match=f"'{name}' parameter of FitRequest must"):
        RUNNERS["lightgbm"].translate(FitRequest(task, TrainingConfig()))


def test_a_rule_is_exact_at_the_values_where_nothing_is_lost():
    edition = MAPPING["sklearn"][-1]
    for subsample, kind in ((1.0, "exact"), (0.5, "unsupported")):
        marks = translate(edition, FitRequest(Task.BINARY, TrainingConfig(subsample=subsample))).marks
        assert {mark.parameter: mark.kind for mark in marks}["subsample"] == kind


def test_as_it_comes_only_what_was_not_avoidable_is_passed():
    request = FitRequest(Task.BINARY, TrainingConfig(max_depth=3), profile=Profile.DEFAULTS)
    native = {library: set(translate(editions[-1], request).native) for library, editions in MAPPING.items()}
    assert native == {
        "boosters": {"objective", "n_threads", "seed", "verbosity"},
        "xgboost": {"objective", "nthread", "seed", "verbosity", "num_boost_round"},
        "lightgbm": {"objective", "num_threads", "seed", "verbosity", "num_iterations"},
        "catboost": {"loss_function", "thread_count", "random_seed", "allow_writing_files", "logging_level"},
        "sklearn": {"loss", "random_state", "verbose"},
    }
    assert "timing" in translate(MAPPING["lightgbm"][-1], request).nondeterministic


def test_before_version_1_7_scikit_learn_cannot_watch_rows():
    request = FitRequest(Task.BINARY, TrainingConfig(early_stopping_rounds=3))
    translation = translate(MAPPING["sklearn"][0], request)
    assert translation.native["early_stopping"] is False
    assert {mark.parameter: mark.kind for mark in translation.marks}["early_stopping_rounds"] == "unsupported"


@given(a=st.integers(-50, 50), b=st.integers(1, 50))
def test_expressions_mean_what_they_say(a, b):
    names = {"a": a, "b": b, "none": None}
    for text in (
        "a + b * 2 - 3",
        "a / b",
        "2 ** b",
        "max(a, b)",
        "min(a, b)",
        "a if a > b else b",
        "not a == b",
        "a < b and a >= 0 or a != 1",
        "none is None",
        "a is not None",
        "a in (1, 2, b)",
        "list((a, b))",
        "a <= b",
    ):
        assert evaluate(text, names) == eval(text, {}, names)


@pytest.mark.parametrize("text", ["a.b", "open('x')", "[i for i in a]", "lambda: 1", "a < b < c", "-a", "a[0]"])
def test_expressions_can_do_nothing_else(text):
    ast.parse(text)
    with pytest.raises((ValueError, KeyError)):
        evaluate(text, {"a": 1, "b": 2, "c": 3})


def test_values_that_do_not_start_with_an_equals_sign_are_passed_as_they_are():
    assert resolve_native({"a": "l2", "b": "=l2", "c": None}, {"l2": 3}) == {"a": "l2", "b": 3, "c": None}


def test_the_first_rule_that_applies_wins():
    rules = (Rule("l2", {"x": 1}, where="l2 == 0"), Rule("l2", {"x": 2}))
    edition = Edition("none", "1", "2", rules)
    values = [translate(edition, FitRequest(Task.BINARY, TrainingConfig(l2=l2))).native["x"] for l2 in (0.0, 1.0)]
    assert values == [1, 2]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"max_dept": 3}, "no parameter 'max_dept'. Did you mean 'max_depth'"),
        ({"subsample": 7}, "'subsample' parameter of TrainingConfig must be less than or equal to 1. Got 7"),
        ({"max_bins": 1}, "'max_bins' parameter"),
        ({"growth_strategy": "sideways"}, "'growth_strategy' parameter"),
    ],
)
def test_a_misspelt_or_impossible_setting_is_an_error_that_names_it(setting, sentence):
    with pytest.raises(ConfigError, match="parameter") as error:
        TrainingConfig(**setting)
    assert sentence in str(error.value)


def test_the_page_in_the_documentation_is_the_one_the_table_gives():
    made = runpy.run_path(str(SCRIPT))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](), "run scripts/make_mapping.py"


def test_the_page_shows_every_rule_of_the_newest_tables():
    text = runpy.run_path(str(SCRIPT))["page"]()
    for editions in MAPPING.values():
        for rule in editions[-1].rules:
            assert rule.reason in text


def test_asking_and_translating_import_neither_numpy_nor_a_library():
    code = (
        "import sys\n"
        "from boosters_eval import Task, TrainingConfig\n"
        "from boosters_eval.runners import RUNNERS, FitRequest\n"
        "request = FitRequest(Task.BINARY, TrainingConfig())\n"
        "for runner in RUNNERS.values(): runner.unsupported(request), runner.translate(request), runner.version()\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'xgboost', 'lightgbm', 'catboost', 'boosters'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_boosters_of_each_library_are_those_of_the_table():
    boosters = {
        library: {
            kind.value
            for kind in BoosterType
            if RUNNERS[library].unsupported(FitRequest(Task.REGRESSION, TrainingConfig(), booster_type=kind)) is None
        }
        for library in MAPPING
    }
    assert boosters == {
        "boosters": {"gbdt", "gblinear", "linear_trees"},
        "xgboost": {"gbdt", "gblinear"},
        "lightgbm": {"gbdt", "linear_trees"},
        "catboost": {"gbdt"},
        "sklearn": {"gbdt"},
    }
    ranking = FitRequest(Task.RANKING, TrainingConfig())
    assert {name for name in MAPPING if RUNNERS[name].unsupported(ranking) is None} == {
        "xgboost",
        "lightgbm",
        "catboost",
    }
