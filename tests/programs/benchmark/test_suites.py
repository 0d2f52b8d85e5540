"""The built-in suites, a user's own, and variants."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.datasets import DATASETS
from boosters_eval.datasets.config import DatasetConfig
from boosters_eval.metrics.task import Task
from boosters_eval.programs.benchmark.compare import prepare_suite
from boosters_eval.programs.benchmark.request import SuiteRequest
from boosters_eval.programs.benchmark.suites import (
    ABLATION_GROWTH_SUITE,
    ABLATION_THREADING,
    ALL_LIBRARIES,
    COMPARISON_DEPTHWISE,
    COMPARISON_LEAFWISE,
    FULL_SUITE,
    GATE_SUITE,
    MINIMAL_SUITE,
    QUICK_SUITE,
    SUITES,
    BenchmarkSuite,
    cost_key,
    costs_by_key,
    count_cells,
    create_ablation_suite,
    estimate_seconds,
    parse_parameters,
    parse_variants,
    register_suite,
    resolve_suite,
    seconds_by_key,
)
from boosters_eval.programs.gate.request import TIERS
from boosters_eval.programs.history.index import HistoryObserver
from boosters_eval.runners.parameters import BoosterType, GrowthStrategy, TrainingConfig
from boosters_eval.stats.bootstrap import covered_level
from tiny import plan_of, tiny_config

BASE = TrainingConfig(n_estimators=7, max_depth=3)


OF_REAL_DATA = ["real24", "time6", "group4", "scale2", "rank1"]


def test_the_built_in_suites_are_those_of_the_specification_and_of_real_data():
    assert list(SUITES) == [
        "minimal",
        "quick",
        "check",
        "full",
        "comparison-depthwise",
        "comparison-leafwise",
        "ablation-growth",
        "ablation-threading",
        "ablation-device",
        "gate",
        *OF_REAL_DATA,
    ]
    assert all(SUITES[name].name == name and SUITES[name].description for name in SUITES)


def test_quick_is_three_seeds_of_small_trees_on_two_data_sets():
    assert QUICK_SUITE.default_seeds == 3
    assert [config.name for config in QUICK_SUITE.configs] == ["california/gbdt", "breast_cancer/gbdt"]
    assert {(c.training.n_estimators, c.training.max_depth) for c in QUICK_SUITE.configs} == {(50, 4)}
    assert {"boosters", "xgboost", "lightgbm"} <= set(QUICK_SUITE.configs[0].libraries)


def test_full_is_five_seeds_of_every_booster_on_nine_data_sets():
    assert FULL_SUITE.default_seeds == 5
    assert len({config.dataset.name for config in FULL_SUITE.configs}) == 9
    assert {config.booster_type for config in FULL_SUITE.configs} == set(BoosterType)
    tasks = [config.task for config in FULL_SUITE.configs if config.booster_type is BoosterType.GBDT]
    assert [tasks.count(task) for task in (Task.REGRESSION, Task.BINARY, Task.MULTICLASS)] == [3, 3, 3]
    assert {(c.training.n_estimators, c.training.max_depth) for c in FULL_SUITE.configs} == {(100, 6)}
    assert all(set(c.libraries) == set(ALL_LIBRARIES) for c in FULL_SUITE.configs if c.booster_type is BoosterType.GBDT)
    assert count_cells(FULL_SUITE) == 9 * (5 + 2 + 2) * 5


def test_no_suite_but_those_of_real_data_needs_a_download():
    lacking = {name for name, suite in SUITES.items() if any(config.dataset.available for config in suite.configs)}
    assert lacking == set(OF_REAL_DATA)


def test_the_gate_suite_has_data_sets_for_every_tier_and_for_a_threshold_of_98_percent():
    names = [config.dataset.name for config in GATE_SUITE.configs]
    assert len(set(names)) == len(names) == 123
    assert len(names) >= max(TIERS.values())
    assert covered_level([1.0] * len(names), 0.98) >= 0.9
    assert {config.task for config in GATE_SUITE.configs} == set(Task) - {Task.RANKING}
    rows = [config.dataset.subsample or config.dataset.n_samples for config in GATE_SUITE.configs]
    assert max(rows) == 2000
    assert count_cells(GATE_SUITE) == 123 * 3


def test_minimal_and_the_comparisons():
    assert MINIMAL_SUITE.default_seeds == 1
    assert all(config.libraries == ("boosters",) for config in MINIMAL_SUITE.configs)
    assert all(c.training.growth_strategy is GrowthStrategy.DEPTHWISE for c in COMPARISON_DEPTHWISE.configs)
    assert all(c.training.growth_strategy is GrowthStrategy.LEAFWISE for c in COMPARISON_LEAFWISE.configs)
    assert {c.libraries for c in COMPARISON_LEAFWISE.configs} == {ALL_LIBRARIES}


def test_ablations_have_a_config_and_a_name_for_each_variant():
    assert [config.name for config in ABLATION_GROWTH_SUITE.configs] == [
        "california/boosters-depthwise",
        "california/boosters-leafwise",
    ]
    assert [config.variant for config in ABLATION_GROWTH_SUITE.configs] == ["depthwise", "leafwise"]
    assert [config.training.n_threads for config in ABLATION_THREADING.configs] == [1, 4, -1]


def test_linear_models_of_full_are_not_penalized_by_the_number_of_rows():
    penalties = {(config.booster_type, config.training.l2) for config in FULL_SUITE.configs}
    assert penalties == {(BoosterType.GBDT, 1), (BoosterType.GBLINEAR, 0), (BoosterType.LINEAR_TREES, 1)}


def test_an_ablation_of_a_users_own_data():
    mine = DatasetConfig(name="mine", task=Task.BINARY, loader=lambda: None)
    suite = create_ablation_suite("a", mine, "lightgbm", {"x": BASE}, seeds=2, booster_type=BoosterType.LINEAR_TREES)
    [config] = suite.configs
    assert (config.name, config.task, config.libraries) == ("mine/lightgbm-x", Task.BINARY, ("lightgbm",))
    assert config.booster_type is BoosterType.LINEAR_TREES
    assert suite.default_seeds == 2
    with pytest.raises(UnknownNameError, match="Did you mean 'california'"):
        create_ablation_suite("a", "califrnia", "boosters", {"x": BASE})
    with pytest.raises(ConfigError, match="at least one variant"):
        create_ablation_suite("a", "california", "boosters", {})


def test_variants_change_what_they_name_and_keep_the_rest():
    variants = parse_variants(["depthwise:growth=depthwise", "leafwise:growth=leafwise,n_leaves=63", "base:"], BASE)
    assert list(variants) == ["depthwise", "leafwise", "base"]
    assert variants["leafwise"] == BASE.replace(growth_strategy=GrowthStrategy.LEAFWISE, n_leaves=63)
    assert variants["base"] == BASE


def test_every_canonical_parameter_may_be_varied():
    values = {
        "n_estimators": 11,
        "learning_rate": 0.25,
        "max_depth": 5,
        "n_leaves": 9,
        "min_samples_leaf": 4,
        "min_child_weight": 0.5,
        "l1": 0.125,
        "l2": 2.5,
        "min_gain": 0.75,
        "max_bins": 63,
        "subsample": 0.5,
        "colsample": 0.25,
        "n_threads": 2,
        "seed": 9,
        "growth_strategy": "leafwise",
        "early_stopping_rounds": 3,
        "device": "cuda",
    }
    assert set(values) == set(TrainingConfig.model_fields)
    text = ",".join(f"{name}={value}" for name, value in values.items())
    assert parse_variants([f"all:{text}"], BASE)["all"] == TrainingConfig(**values)
    stopping = BASE.replace(early_stopping_rounds=3)
    assert parse_variants(["a:early_stopping_rounds=none"], stopping)["a"] == BASE


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 10), st.integers(1, 16), st.integers(2, 1000))
def test_short_names_mean_the_long_ones(rate, depth, leaves):
    text = f"a:lr={rate!r}, depth={depth},leaves={leaves}, trees=3,bins=64,threads=1"
    expected = BASE.replace(
        learning_rate=rate, max_depth=depth, n_leaves=leaves, n_estimators=3, max_bins=64, n_threads=1
    )
    assert parse_variants([text], BASE)["a"] == expected


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["a:grwth=leafwise"], "Variant 'a' names an unknown parameter 'grwth'. Did you mean 'growth'"),
        (["a:min_leaf=3"], "unknown parameter 'min_leaf'"),
        (["a:growth=sideways"], "'growth_strategy' in variant 'a' must be"),
        (["a:depth=99"], "'max_depth' in variant 'a' must be"),
        (["a:depth"], "Variant 'a' must give 'depth' one value"),
        (["a:depth="], "Variant 'a' must give 'depth' one value"),
        (["a:depth=3,max_depth=4"], "Variant 'a' must give 'max_depth' one value"),
        (["growth=leafwise"], "must be written name:parameter=value,... without spaces, or in quotes"),
        ([":growth=leafwise"], "must be written"),
        (["a|b:growth=leafwise"], "must be written"),
        (["a:l2=1", "a:l2=2"], "names of variants must be unique. Got 'a' twice"),
    ],
)
def test_a_wrong_variant_is_one_sentence(texts, sentence):
    with pytest.raises(ConfigError) as caught:
        parse_variants(texts, BASE)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parameters_by_themselves_are_read_as_in_a_variant_and_blamed_on_their_option():
    assert parse_parameters(["depth=3", "lr=0.5,l2=0"], BASE) == BASE.replace(max_depth=3, learning_rate=0.5, l2=0)
    assert parse_parameters([], BASE) == BASE
    for text, sentence in (
        ("max_dept=3", "The '--param' option names an unknown parameter 'max_dept'. Did you mean 'max_depth'?"),
        ("depth", "The '--param' option must give 'depth' one value"),
        ("depth=99", "'max_depth' in the '--param' option must be"),
    ):
        with pytest.raises(ConfigError) as caught:
            parse_parameters([text], BASE)
        assert str(caught.value).startswith(sentence)


SUITE_FILE = """
from boosters_eval import BenchmarkConfig, BenchmarkSuite, DATASETS, DatasetConfig, Task, register_dataset

register_dataset(DatasetConfig(name="{name}", task=Task.REGRESSION, loader=lambda: ([[1.0], [2.0]], [1.0, 2.0])))
SUITE = BenchmarkSuite(
    name="mine",
    configs=[BenchmarkConfig(name="mine/gbdt", dataset=DATASETS["{name}"], task=Task.REGRESSION)],
)
OTHER = 7
"""


@pytest.fixture
def suite_file(tmp_path):
    """A suite of the user's own, which registers data."""
    path = tmp_path / "my_suite.py"
    path.write_text(SUITE_FILE.format(name="data-of-my-suite"))
    yield path
    if "data-of-my-suite" in DATASETS:
        DATASETS.unregister("data-of-my-suite")


def test_a_suite_comes_by_name_by_file_or_as_it_is(suite_file):
    assert resolve_suite("quick")[0] is QUICK_SUITE
    assert resolve_suite(QUICK_SUITE)[0] is QUICK_SUITE
    suite, _ = resolve_suite(f"{suite_file}:SUITE")
    assert suite.name == "mine"
    assert resolve_suite(str(suite_file))[0] is suite  # and its file is run once
    with pytest.raises(ConfigError, match=r"'OTHER' in .* must be a BenchmarkSuite. Got int"):
        resolve_suite(f"{suite_file}:OTHER")
    with pytest.raises(ConfigError, match="has no suite 'NONE'"):
        resolve_suite(f"{suite_file}:NONE")


def test_a_suite_that_is_not_there_or_fails_is_one_sentence(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'quick'"):
        resolve_suite("quik")
    with pytest.raises(ConfigError, match="does not exist"):
        resolve_suite(f"{tmp_path}/none.py:SUITE")
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0")
    with pytest.raises(ConfigError, match="failed: ZeroDivisionError: division by zero"):
        resolve_suite(f"{broken}:SUITE")
    broken.with_name("typo.py").write_text("from boosters_eval import DATASETS\nDATASETS['irris']")
    with pytest.raises(UnknownNameError, match="Did you mean 'iris'"):
        resolve_suite(f"{tmp_path}/typo.py:SUITE")


def test_a_registered_suite_is_found_by_its_name():
    suite = BenchmarkSuite(name="ours", configs=MINIMAL_SUITE.configs)
    register_suite(suite)
    try:
        assert resolve_suite("ours")[0] is suite
        with pytest.raises(ConfigError, match="already registered"):
            register_suite(suite)
    finally:
        SUITES.unregister("ours")


def test_an_entry_point_brings_a_third_partys_suite(tmp_path):
    (tmp_path / "their_suite.py").write_text(
        "from boosters_eval.programs.benchmark.suites import MINIMAL_SUITE\n"
        "SUITE = MINIMAL_SUITE.replace(name='theirs')\n"
    )
    info = tmp_path / "their_suite-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-suite\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[boosters_eval.suites]\ntheirs = their_suite:SUITE\n")
    code = "from boosters_eval.programs.benchmark.suites import SUITES; print(SUITES['theirs'].name)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout.strip() == "theirs"


def history(suite, seconds, libraries):
    return {
        cost_key(config.dataset.name, config.booster_type, config.training, library): seconds
        for config in suite.configs
        for library in libraries
    }


def test_the_estimate_is_the_sum_of_known_cells_and_fills_in_the_few_unknown():
    assert count_cells(QUICK_SUITE) == 2 * 5 * 3
    assert estimate_seconds(QUICK_SUITE, history(QUICK_SUITE, 2.0, ALL_LIBRARIES)) == 60
    assert estimate_seconds(QUICK_SUITE, history(QUICK_SUITE, 2.0, ALL_LIBRARIES), jobs=2) == 30
    assert estimate_seconds(QUICK_SUITE, history(QUICK_SUITE, 2.0, ALL_LIBRARIES[:3])) == 60
    assert estimate_seconds(QUICK_SUITE, history(QUICK_SUITE, 2.0, ALL_LIBRARIES[:2])) is None
    assert estimate_seconds(QUICK_SUITE, {}) is None


def test_the_estimate_does_not_take_other_parameters_for_the_same():
    assert estimate_seconds(FULL_SUITE, history(QUICK_SUITE, 2.0, ALL_LIBRARIES)) is None


def test_folds_and_seeds_of_a_config_count():
    config = MINIMAL_SUITE.configs[0].replace(folds=5, seeds=(1, 2, 3))
    assert count_cells(BenchmarkSuite(name="cv", configs=(config,))) == 15


def costs(fault, seconds):
    training = tiny_config(fault).training
    return {cost_key("tiny", BoosterType.GBDT, training, "faulty"): seconds}


@pytest.mark.usefixtures("faulty")
def test_a_cell_takes_what_such_cells_took_and_an_unknown_one_the_mean():
    plan = plan_of(tiny_config(), tiny_config("nan"), seeds=2)
    found = seconds_by_key(plan.cells, costs("none", 3.0))
    assert found == dict.fromkeys((cell.key for cell in plan.cells), 3.0)


@pytest.mark.usefixtures("faulty")
def test_nothing_is_estimated_if_less_than_half_is_known():
    plan = plan_of(tiny_config(), tiny_config("nan"), tiny_config("hang"), seeds=2)
    assert seconds_by_key(plan.cells, costs("none", 3.0)) == {}
    assert seconds_by_key(plan.cells, {}) == {}


def test_trees_that_were_never_trained_here_take_what_they_usually_do(tmp_path):
    plan = prepare_suite(SuiteRequest(suite="quick", libraries=["sklearn"], seeds=1, home=tmp_path)).plan
    guessed = seconds_by_key(plan.cells, {})
    assert set(guessed) == {cell.key for cell in plan.cells}
    small, large = sorted(guessed.values())
    assert 0.3 < small < large < 5
    config = QUICK_SUITE.configs[0]
    known = {cost_key(config.dataset.name, config.booster_type, config.training, "sklearn"): 100.0}
    assert sorted(seconds_by_key(plan.cells, known).values()) == [small, 100.0]


@pytest.mark.usefixtures("faulty")
def test_parameters_that_this_version_does_not_know_are_skipped():
    training = TrainingConfig().model_dump_json()
    found = costs_by_key({("a", "gbdt", "x", training): 1.0, ("a", "gbdt", "y", '{"odd": 1}'): 2.0})
    assert list(found.values()) == [1.0]


@pytest.mark.usefixtures("faulty")
def test_a_history_that_cannot_be_read_harms_no_run(monkeypatch):
    def broken(_home):
        raise OSError("damaged")

    monkeypatch.setattr("boosters_eval.programs.history.query.read_cell_seconds", broken)
    assert HistoryObserver.expected_seconds(plan_of(tiny_config()), None) == {}
