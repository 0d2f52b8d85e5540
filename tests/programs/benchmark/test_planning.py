import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

from boosters_eval.engine.plan import Plan
from boosters_eval.programs.benchmark.spec import model_seed
from boosters_eval.runners import installed
from boosters_eval.runners.config import derive_seeds
from boosters_eval.runners.installed import installed_build
from tiny import plan_of, prepare_tiny, run_tiny, tiny_config


def test_same_content_has_the_same_run_id_whatever_its_order_and_name(faulty):
    one, two = tiny_config("none"), tiny_config("slow")
    a = prepare_tiny(one, two, name="a", seeds=2).plan
    b = prepare_tiny(two, one, name="b", seeds=2).plan
    assert a.run_id == b.run_id
    several, reversed_ = (one.replace(libraries=names) for names in (("sklearn", "faulty"), ("faulty", "sklearn")))
    assert plan_of(several).run_id == plan_of(reversed_).run_id
    assert len(a.run_id) == 16
    int(a.run_id, 16)


@pytest.mark.parametrize("change", [{"seeds": 3}, {"timing_mode": True}, {"warmup": 2}, {"measure_memory": True}])
def test_what_a_result_depends_on_changes_the_run_id(faulty, change):
    assert plan_of(tiny_config("none")).run_id != plan_of(tiny_config("none"), **change).run_id


def test_jobs_and_timeouts_do_not_change_the_run_id(faulty):
    assert plan_of(tiny_config("none")).run_id == plan_of(tiny_config("none"), jobs=2, timeout=9.0).run_id


def test_rebuilt_library_under_the_same_version_is_a_different_plan(faulty, monkeypatch, tmp_path):
    before = plan_of(tiny_config("none"))
    (tmp_path / "faulty_runner.py").write_text(Path(faulty.__file__).read_text() + "\n# rebuilt\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "faulty_runner")
    after = plan_of(tiny_config("none"))
    assert before.builds["fit"]["faulty"].version == after.builds["fit"]["faulty"].version
    assert before.run_id != after.run_id


def test_build_digest_of_an_installed_library_is_the_same_twice_and_sees_a_changed_file(monkeypatch, tmp_path):
    package = tmp_path / "acme"
    info = tmp_path / "acme-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text("x = 1\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "RECORD").write_text("acme/__init__.py,sha256=abc,6\nacme-1.0.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    class Acme:
        module = "acme"
        distributions = ("acme",)
        installation = None
        labeled = False

        @staticmethod
        def version():
            return "1.0"

    recorded = installed_build(Acme)
    assert recorded == installed_build(Acme)
    import os

    real, code = os.stat, str(package / "__init__.py")

    def stat(path, **options):  # an older file was copied over it later, with its time
        found = real(path, **options)
        later = 3600 if str(path) == code else 0
        return types.SimpleNamespace(st_mtime=found.st_mtime - later, st_ctime=found.st_ctime + later)

    with monkeypatch.context() as patched:
        patched.setattr(installed, "os", types.SimpleNamespace(stat=stat))
        assert installed_build(Acme).digest != recorded.digest
    (package / "__init__.py").write_text("x = 2\n")
    os.utime(package / "__init__.py", (2e9, 2e9))
    assert installed_build(Acme).digest != recorded.digest
    changed = installed_build(Acme)
    shadow = tmp_path / "first" / "acme"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("x = 3\n")
    monkeypatch.syspath_prepend(str(shadow.parent))
    shadowed = installed_build(Acme)  # the metadata are still those of the other one
    assert shadowed.digest not in {recorded.digest, changed.digest}
    (shadow / "__init__.py").write_text("x = 4\n")
    edited = installed_build(Acme)
    (package / "__init__.py").write_text("x = 5\n")  # as the compiled part of an editable installation lies apart
    (tmp_path / "__editable___acme_finder.py").write_text(f"PATH = '{tmp_path}'\n")
    (info / "RECORD").write_text((info / "RECORD").read_text() + "__editable___acme_finder.py,,\n")
    zipped = tmp_path / "acme.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("acme/__init__.py", "x = 6\n")
    rebuilt = installed_build(Acme)
    (tmp_path / "__editable___acme_finder.py").write_text("PATH = 'elsewhere'\n")
    assert installed_build(Acme) == rebuilt
    monkeypatch.syspath_prepend(str(zipped))
    found = [shadowed, edited, rebuilt, installed_build(Acme)]
    assert len({build.digest for build in found}) == 4


def test_changed_source_of_an_adapter_is_a_different_plan(faulty, monkeypatch, tmp_path):
    before = plan_of(tiny_config("none"))
    copy = tmp_path / "other.py"
    copy.write_text(Path(faulty.__file__).read_text() + "OFFSET = 500\n")
    monkeypatch.setattr(faulty, "__file__", str(copy))
    assert plan_of(tiny_config("none")).run_id != before.run_id


def test_two_things_of_one_name_are_refused(faulty):
    from boosters_eval.core.errors import ConfigError
    from tiny import TINY, tiny_table

    x, y = tiny_table()
    other = TINY.replace(loader=lambda: (x * 100, y))
    with pytest.raises(ConfigError, match="Two different data sets are named 'tiny'"):
        plan_of(tiny_config("none"), tiny_config("slow").replace(dataset=other))
    with pytest.raises(ConfigError, match="Got 'tiny/none' twice"):
        plan_of(tiny_config("none"), tiny_config("none"))
    with pytest.raises(ConfigError, match="has a library twice"):
        plan_of(tiny_config("none").replace(libraries=("faulty", "faulty")))
    with pytest.raises(ConfigError, match="has a seed twice"):
        plan_of(tiny_config("none", seeds=(5, 5)), seeds=None)


def test_more_folds_than_rows_are_refused(faulty):
    from boosters_eval.core.errors import ConfigError

    with pytest.raises(ConfigError, match="61 folds are more than the 60 rows"):
        plan_of(tiny_config("none", folds=61))


def test_setting_without_effect_is_said_and_equal_variants_are_one_row():
    from boosters_eval import GrowthStrategy, TrainingConfig, prepare_comparison

    leafwise = TrainingConfig(growth_strategy=GrowthStrategy.LEAFWISE)
    prepared = prepare_comparison("iris", "sklearn", seeds=1, training=leafwise.replace(max_depth=3))
    assert "max_depth=3 has no effect in iris/gbdt" in prepared.notes
    twins = {"a": leafwise.replace(max_depth=3), "b": leafwise.replace(max_depth=9)}
    prepared = prepare_comparison("iris", "sklearn", seeds=1, variants=twins | {"c": TrainingConfig()})
    assert [spec.variant for spec in prepared.plan.specs] == ["a = b", "c"]
    assert "iris: 'a' and 'b' are the same here, and one row" in prepared.notes


def test_more_threads_than_there_are_come_out_as_one_row(monkeypatch):
    from boosters_eval import prepare_suite
    from boosters_eval.programs.benchmark import planning

    for cores, rows in ((1, ["single = multi-4 = multi-auto"]), (2, ["single", "multi-4 = multi-auto"])):
        monkeypatch.setattr(planning, "resolve_threads", lambda n, most=cores: most if n < 0 else min(n, most))
        plan = prepare_suite("ablation-threading", seeds=1).plan
        assert [spec.variant for spec in plan.specs] == rows
        assert len(plan.cells) == len(rows)


def test_configs_of_one_library_that_differ_are_rows_of_one_table():
    from boosters_eval import BenchmarkConfig, BenchmarkSuite, TrainingConfig, prepare_comparison, prepare_suite
    from boosters_eval.datasets import DATASETS

    boosters = ["gbdt", "gblinear", "linear_trees"]
    plan = prepare_comparison("iris", "boosters", boosters, seeds=1).plan
    assert [spec.variant for spec in plan.specs] == boosters
    data = DATASETS["iris"]
    depths = [
        BenchmarkConfig(
            f"iris/{d}-{l2}", data, data.task, training=TrainingConfig(max_depth=d, l2=l2), libraries=("x",)
        )
        for d, l2 in ((3, 1.0), (3, 0.0), (8, 0.0))
    ]
    both = [config.replace(libraries=("sklearn", "lightgbm")) for config in depths]
    ours = [config.replace(libraries=("sklearn",)) for config in depths]
    plan = prepare_suite(BenchmarkSuite("own", ours), seeds=1).plan
    assert [spec.variant for spec in plan.specs] == [
        "max_depth=3, l2=1.0",
        "max_depth=3, l2=0.0",
        "max_depth=8, l2=0.0",
    ]
    assert {spec.variant for spec in prepare_suite(BenchmarkSuite("own", both), seeds=1).plan.specs} == {None}
    twins = [*ours[:2], ours[0].replace(name="iris/again")]
    plan = prepare_suite(BenchmarkSuite("own", twins), seeds=1).plan
    assert [spec.variant for spec in plan.specs] == ["l2=1.0, iris/3-1.0 = l2=1.0, iris/again", "l2=0.0"]
    named = [
        ours[0].replace(variant="mine"),
        ours[1],
        ours[0].replace(name="iris/more", variant="m", metrics=("brier",)),
    ]
    plan = prepare_suite(BenchmarkSuite("own", named), seeds=1).plan
    assert [spec.variant for spec in plan.specs] == ["mine", "l2=0.0", "m"]  # other metrics are no twins
    other = [ours[0], ours[1].replace(validation_fraction=0.5)]  # scores on other splits are no rows of one table
    assert {spec.variant for spec in prepare_suite(BenchmarkSuite("own", other), seeds=1).plan.specs} == {None}


def test_plan_survives_its_file(faulty):
    plan = plan_of(tiny_config("none"), tiny_config("slow", folds=3))
    again = Plan.model_validate_json(plan.model_dump_json())
    assert again == plan
    assert again.run_id == plan.run_id
    assert [c.key for c in again.cells] == [c.key for c in plan.cells]


def test_folds_multiply_the_cells(faulty):
    assert len(plan_of(tiny_config("none", folds=3), seeds=2).cells) == 6


def test_order_of_running_is_shuffled_by_library_but_fixed(faulty):
    configs = [tiny_config("none").replace(libraries=("faulty", "sklearn", "xgboost", "lightgbm"))]
    plan = plan_of(*configs, seeds=6)
    order = plan.in_running_order(plan.cells)
    assert order == plan.in_running_order(plan.cells)
    assert [c.repeat.seed for c in order] == sorted(c.repeat.seed for c in order)
    by_seed = {tuple(c.target.name for c in order if c.repeat.seed == seed) for seed in derive_seeds(6)}
    assert len(by_seed) > 1
    assert {frozenset(libraries) for libraries in by_seed} == {frozenset(configs[0].libraries)}


def test_longest_benchmarks_of_a_repeat_start_first(faulty):
    short, long = tiny_config("none"), tiny_config("none", "tiny/long")
    long = long.replace(training=long.training.replace(n_estimators=400))
    plan = plan_of(short, long, seeds=2)
    assert [c.spec.name for c in plan.in_running_order(plan.cells)] == ["tiny/long", short.name] * 2


def test_model_seed_is_the_same_in_every_process_and_apart_for_each_library(faulty):
    plan = plan_of(tiny_config("none").replace(libraries=("faulty", "sklearn")))
    seeds = {cell.key: model_seed(cell) for cell in plan.cells}
    assert len(set(seeds.values())) == len(seeds)
    code = "import hashlib; print(int.from_bytes(hashlib.sha256(b'42|42|tiny/none|faulty').digest()[:4]) & 0x7FFFFFFF)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seeds["tiny/none|faulty|42"] == int(done.stdout)


def test_unsupported_combination_is_set_apart_with_its_reason(faulty):
    from boosters_eval.runners.parameters import BoosterType

    plan = plan_of(tiny_config("none"), tiny_config("slow", booster_type=BoosterType.GBLINEAR))
    assert [(item.spec, item.target, item.reason) for item in plan.excluded] == [
        ("tiny/slow", "faulty", "it has no linear booster")
    ]
    assert {c.spec.name for c in plan.cells} == {"tiny/none"}


def test_nothing_to_run_is_an_error(faulty):
    from boosters_eval.core.errors import UnsupportedError
    from boosters_eval.runners.parameters import BoosterType

    with pytest.raises(UnsupportedError, match="no linear booster"):
        run_tiny(tiny_config("none", booster_type=BoosterType.GBLINEAR))
