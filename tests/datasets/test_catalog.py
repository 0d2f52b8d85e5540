"""What is registered, and that the bundled tables are the real ones."""

import hashlib
import json
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

import factories
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.datasets import DATASETS, materialize, open_stored, register_dataset
from boosters_eval.datasets.catalog import BUILTIN, BUNDLED, DOWNLOADS, PROBLEMS, fetch_dataset
from boosters_eval.datasets.real import load_shipped
from boosters_eval.metrics.task import Task
from processes import environment

HERE = [name for name in BUILTIN if name not in DOWNLOADS and name not in PROBLEMS]


def test_bundled_files_have_their_checksums_and_stay_under_five_megabytes():
    folder = files("boosters_eval.datasets") / "bundled"
    contents = {entry.name: entry.read_bytes() for entry in folder.iterdir()}
    assert {name.removesuffix(".npz"): hashlib.sha256(data).hexdigest() for name, data in contents.items()} == BUNDLED
    assert sum(map(len, contents.values())) < 5_000_000


def test_california_is_the_real_table():
    table = load_shipped("california")
    assert table.x.shape == (20640, 8)
    assert table.x.dtype == np.float32
    assert table.y.mean() == pytest.approx(2.068558, abs=5e-7)
    assert table.y[0] == 4.526
    assert table.x[0, 0] == np.float32(8.3252)
    # means as published with the data set by scikit-learn's documentation of it
    means = dict(zip(table.feature_names, table.x.mean(axis=0, dtype=np.float64), strict=True))
    assert means["MedInc"] == pytest.approx(3.8707, abs=1e-4)
    assert means["AveRooms"] == pytest.approx(5.4290, abs=1e-4)
    assert means["AveBedrms"] == pytest.approx(1.0967, abs=1e-4)
    assert means["AveOccup"] == pytest.approx(3.0707, abs=1e-4)
    assert means["Longitude"] == pytest.approx(-119.5697, abs=1e-4)


def test_adult_has_its_official_split_missing_values_and_categories():
    table = load_shipped("adult")
    assert table.x.shape == (48842, 14)
    counts = {
        (part, label): int(((table.split == part) & (table.y == label)).sum()) for part in (0, 1) for label in (0, 1)
    }
    assert counts == {(0, 0): 24720, (0, 1): 7841, (1, 0): 12435, (1, 1): 3846}
    missing = np.isnan(table.x).sum(axis=0)
    by_name = {name: int(n) for name, n in zip(table.feature_names, missing, strict=True) if n}
    assert by_name == {"workclass": 2799, "occupation": 2809, "native-country": 857}
    assert len(table.categorical) == 8
    assert table.category_names["gender"] == ["Female", "Male"]
    assert table.x[0, 0] == 25
    assert np.array_equal(table.sensitive, table.x[:, table.feature_names.index("gender")])
    for position in table.categorical:
        codes = table.x[:, position]
        assert np.nanmax(codes) + 1 == len(table.category_names[table.feature_names[position]])


def test_diamonds_are_the_real_table():
    table = load_shipped("diamonds")
    assert table.x.shape == (53940, 9)
    assert table.y.mean() == pytest.approx(3932.80, abs=5e-3)
    assert table.x[0] == pytest.approx([0.23, 4, 5, 1, 61.5, 55, 3.95, 3.98, 2.43])
    cuts = np.bincount(table.x[:, 1].astype(int))
    assert dict(zip(table.category_names["cut"], cuts.tolist(), strict=True)) == {
        "Fair": 1610,
        "Good": 4906,
        "Very Good": 12082,
        "Premium": 13791,
        "Ideal": 21551,
    }


def test_covertype_sample_keeps_the_shares_of_the_classes_and_its_row_numbers():
    table = load_shipped("covertype_50k")
    whole = np.array([211840, 283301, 35754, 2747, 9493, 17367, 20510])
    assert table.x.shape == (50000, 54)
    assert np.abs(np.bincount(table.y.astype(int)) - whole * 50000 / 581012).max() < 1
    assert (table.x[:, 10:14].sum(axis=1) == 1).all()
    assert (table.x[:, 14:].sum(axis=1) == 1).all()
    with np.load(files("boosters_eval.datasets") / "bundled" / "covertype_50k.npz") as stored:
        rows = stored["row"]
    assert len(np.unique(rows)) == 50000
    assert rows.max() < 581012


@pytest.mark.parametrize("name", ["iris", "breast_cancer", "wine", "digits", "diabetes"])
def test_small_classics_equal_those_of_scikit_learn(name):
    import sklearn.datasets

    options = {"scaled": False} if name == "diabetes" else {}
    theirs = getattr(sklearn.datasets, f"load_{name}")(**options)
    table = load_shipped(name)
    assert np.array_equal(table.x, theirs.data.astype(np.float32))
    assert np.array_equal(table.y, theirs.target)
    assert list(table.feature_names) == list(theirs.feature_names)


@pytest.mark.parametrize("name", HERE)
def test_every_declared_fact_is_true_of_the_data(name, cache):
    config = DATASETS[name]
    stored = materialize(config)
    assert (stored.n_samples, stored.n_features) == (config.n_samples, config.n_features)
    assert stored.n_classes == config.n_classes
    assert stored.has_missing is config.has_missing
    assert stored.categorical == config.categorical
    assert config.source
    assert config.license
    assert config.description
    assert len(open_stored(stored.path).feature_names) == config.n_features


def test_every_task_has_synthetic_data_in_three_sizes():
    for kind, task in (
        ("reg", "REGRESSION"),
        ("bin", "BINARY"),
        ("multi", "MULTICLASS"),
        ("rank", "RANKING"),
        ("quantile", "QUANTILE"),
    ):
        rows = [DATASETS[f"synthetic_{kind}_{size}"].n_samples for size in ("small", "medium", "large")]
        assert rows == sorted(set(rows))
        assert DATASETS[f"synthetic_{kind}_small"].task is Task[task]


def test_data_that_must_be_downloaded_says_so_and_names_the_command(cache):
    for name in DOWNLOADS:
        assert f"datasets fetch {name}" in DATASETS[name].available()


def test_bundled_data_needs_no_download(cache):
    assert fetch_dataset(DATASETS["iris"]) is None


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'california'"):
        DATASETS["califronia"]


def test_a_registered_lambda_runs_like_a_built_in_set_and_its_loader_is_called_once(cache):
    calls = []
    data = (np.arange(20.0).reshape(10, 2), np.arange(10.0))
    config = factories.dataset("mine", loader=lambda: calls.append(1) or data)
    register_dataset(config)
    try:
        first, second = materialize(DATASETS["mine"]), materialize(DATASETS["mine"])
        assert first == second
        assert calls == [1]
        with pytest.raises(ConfigError, match="already registered"):
            register_dataset(config)
        assert register_dataset(config.replace(description="new"), replace=True).description == "new"
    finally:
        DATASETS.unregister("mine")


def test_listing_imports_nothing_scientific():
    code = (
        "import sys, json; import boosters_eval.datasets as d, boosters_eval.programs.benchmark.suites as s; "
        "[c.available and c.available() for c in d.DATASETS.values()]; len(s.SUITES); "
        "print(json.dumps([m for m in ('numpy', 'pandas', 'scipy', 'sklearn') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_an_unknown_attribute_of_the_package_is_an_attribute_error():
    import boosters_eval.datasets

    with pytest.raises(AttributeError, match="nothing"):
        _ = boosters_eval.datasets.nothing


def test_an_entry_point_brings_a_third_partys_data_set(tmp_path):
    (tmp_path / "third_party.py").write_text(
        "from boosters_eval import DatasetConfig, Task\n"
        "DATA = DatasetConfig(name='theirs', task=Task.BINARY, loader=lambda: None, n_samples=7)\n"
    )
    info = tmp_path / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[boosters_eval.datasets]\ntheirs = third_party:DATA\n")
    code = "from boosters_eval.datasets import DATASETS; print(DATASETS['theirs'].n_samples)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    assert done.stdout.strip() == "7"


def test_table_of_each_bundled_file_is_the_pinned_one(cache):
    for name in BUNDLED:
        assert materialize(DATASETS[name]).digest == DATASETS[name].table_digest, name
