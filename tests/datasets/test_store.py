"""The cache: written once and whole, found again, rebuilt when damaged, and what may not enter it."""

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import factories
from boosters_eval.core.errors import BoostersEvalWarning, DatasetError, UnknownNameError
from boosters_eval.datasets import DATASETS, Table, materialize, open_stored, store
from boosters_eval.metrics.task import Task

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = RNG.normal(size=40)


def config_of(result, task=Task.REGRESSION, **facts):
    return factories.dataset("mine", task, result, **facts)


def table_of(**parts):
    return Table(**{"x": X, "y": Y, **parts})


def counted(result, recipe):
    calls = []

    def load():
        calls.append(1)
        return result

    return factories.dataset("mine", loader=load, recipe=recipe), calls


def test_arrays_are_memory_mapped_and_typed(cache):
    groups = np.repeat([1, 2, 3, 4], 10)
    config = config_of(table_of(y=np.arange(40) % 5, groups=groups, weights=np.ones(40)), Task.RANKING)
    stored = materialize(config)
    table = open_stored(stored.path)
    assert isinstance(table.x, np.memmap)
    assert (table.x.dtype, table.y.dtype, table.groups.dtype, table.weights.dtype) == (
        np.float32,
        np.float64,
        np.int64,
        np.float64,
    )
    assert np.array_equal(table.x, X.astype(np.float32))
    assert stored.weighted
    assert stored.n_groups == 4
    assert table.sensitive is None


def test_a_recipe_is_found_again_without_its_loader_in_another_process(cache):
    code = (
        "import sys, json; from boosters_eval.datasets import DATASETS, materialize; "
        "config = DATASETS['breast_cancer']; "
        "broken = config.replace(loader=lambda: 1 / 0) if len(sys.argv) > 1 else config; "
        "print(json.dumps([materialize(broken).digest, [m for m in ('sklearn', 'pandas') if m in sys.modules]]))"
    )
    first = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    second = subprocess.run([sys.executable, "-c", code, "broken"], capture_output=True, text=True, check=True)
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert json.loads(second.stdout)[1] == []


def test_the_most_categories_of_a_column_are_known_without_the_missing_ones(cache):
    x = X.copy()
    x[:, 0] = np.arange(40) % 7 * 100
    x[:, 1] = np.arange(40) % 5
    x[::9, 0] = np.nan
    assert materialize(config_of(table_of(x=x, categorical=(0, 1)))).max_categories == 7
    assert materialize(config_of(table_of(x=x))).max_categories == 0


def test_another_recipe_or_subsample_runs_the_loader_again(cache):
    config, calls = counted((X, Y), "1")
    digest = materialize(config).digest
    assert materialize(config.replace(recipe="2")).digest == digest
    assert materialize(config.replace(subsample=20)).n_samples == 20
    assert len(calls) == 3


def test_without_a_recipe_the_loader_runs_once_a_process_and_content_is_the_key(cache):
    config, calls = counted((X, Y), None)
    first = materialize(config)
    assert materialize(config) is first
    other, _ = counted((X, Y + 1), None)
    assert materialize(other).digest != first.digest
    same, more = counted((X, Y), None)
    assert materialize(same).path == first.path
    assert (len(calls), len(more)) == (1, 1)


def test_the_digest_covers_values_names_and_the_task(cache):
    digests = {
        materialize(config).digest
        for config in (
            config_of((X, Y)),
            config_of((X, Y), feature_names=("a", "b", "c")),
            config_of((X, Y), Task.QUANTILE, quantiles=(0.5,)),
            config_of((X, -Y)),
            config_of(table_of(weights=np.ones(40))),
        )
    }
    assert len(digests) == 5


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path, position=-1):
    """One bit in place, with the times that the file had: only its content tells."""
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: truncate(path / "x.npy"),
        lambda path: flip(path / "y.npy"),
        lambda path: flip(path / "x.npy", 9),
        lambda path: (path / "table.json").write_text(
            (path / "table.json").read_text().replace('"regression"', '"binary"')
        ),
        lambda path: (path / "y.npy").unlink(),
        lambda path: (path / "table.json").write_text("{"),
        lambda path: (path / "table.json").unlink(),
        lambda path: (path / "table.json").write_text('{"schema_version": 2}'),
        lambda path: (path / "table.json").write_bytes(b"\xff\xfe"),
    ],
)
def test_a_damaged_entry_is_detected_and_rebuilt(cache, damage):
    config, calls = counted((X, Y), "1")
    stored = materialize(config)
    damage(stored.path)
    with pytest.raises(DatasetError, match="damaged"):
        open_stored(stored.path)
    with pytest.warns(BoostersEvalWarning, match="is damaged: it is discarded and rebuilt"):
        assert materialize(config) == stored
    assert np.array_equal(open_stored(stored.path).y, Y)
    assert len(calls) == 2
    assert sorted(entry.name for entry in stored.path.parent.iterdir()) == [stored.path.name]


@pytest.mark.parametrize("content", [b"", b"../../etc", b"\xff" * 64, b"0" * 64])
def test_a_recipe_file_that_is_not_a_digest_is_not_followed(cache, content):
    config, calls = counted((X, Y), "1")
    stored = materialize(config)
    [recipe] = (cache / "recipes").iterdir()
    recipe.write_bytes(content)
    store._DONE.clear()
    assert materialize(config) == stored
    assert len(calls) == 2


def test_rows_of_a_data_set_that_nobody_has_any_more_are_given_back(cache):
    x = np.zeros((40, 3))
    rows = weakref.ref(x)
    config, calls = counted((x, Y), None)
    del x
    assert materialize(config) == materialize(config)
    assert len(calls) == 1
    known = len(store._DONE)
    del config
    gc.collect()
    assert rows() is None
    assert len(store._DONE) == known - 1


def test_a_loader_to_which_nothing_may_refer_weakly_is_called_once_as_well(cache):
    class Loader:
        __slots__ = ("calls",)

        def __call__(self):
            self.calls += 1
            return X, Y

    loader = Loader()
    loader.calls = 0
    config = factories.dataset("mine", loader=loader)
    assert materialize(config) == materialize(config)
    assert loader.calls == 1


def test_names_are_never_paths(cache, tmp_path):
    config = factories.dataset("../../evil/name", data=(X, Y), recipe="1")
    materialize(config)
    assert not (tmp_path / "evil").exists()
    assert len(list((cache / "recipes").iterdir())) == 1


MANY = """
import os, sys
import numpy as np
from boosters_eval import DatasetConfig, Task
from boosters_eval.datasets import materialize, open_stored
config = DatasetConfig(name="n", task=Task.REGRESSION, recipe="1",
                       loader=lambda: (np.arange(200_000.).reshape(-1, 4), np.arange(50_000.)))
begin, write = os.pipe()
for _ in range(4):  # forks, for which everything is imported once and which all begin at one moment
    if os.fork() == 0:
        os.close(write)
        os.read(begin, 1)
        stored = materialize(config)
        assert open_stored(stored.path).x[-1, -1] == 199_999
        os.write(1, f"{stored.digest}\\n".encode())
        os._exit(0)
os.close(write)
sys.exit(any([os.wait()[1] for _ in range(4)]))
"""


def test_many_processes_at_once_make_one_whole_entry(cache):
    done = subprocess.run([sys.executable, "-c", MANY], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    digests = done.stdout.split()
    assert len(digests) == 4
    assert len(set(digests)) == 1
    assert len(list((cache / "tables").iterdir())) == 1


def test_a_table_that_another_process_finished_first_stays(cache, tmp_path):
    stored = materialize(config_of((X, Y)))
    late = tmp_path / "late"
    late.mkdir()
    (late / "mark").touch()
    store._take_name(late, stored.path)
    assert not (stored.path / "mark").exists()
    assert np.array_equal(open_stored(stored.path).y, Y)


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(DatasetError, match=r"Cannot keep data set 'mine' in .*BOOSTERS_EVAL_CACHE"):
        materialize(config_of((X, Y)), blocked)


def test_the_cache_is_the_platforms_unless_the_environment_names_one_or_a_home(monkeypatch, tmp_path):
    from boosters_eval.datasets.fetch import cache_root

    monkeypatch.setenv("BOOSTERS_EVAL_CACHE", "~/somewhere")
    assert cache_root() == Path.home() / "somewhere"
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path))
    assert cache_root() == Path.home() / "somewhere"
    monkeypatch.delenv("BOOSTERS_EVAL_CACHE")
    assert cache_root() == tmp_path / "cache"
    (tmp_path / "file").touch()
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "file"))  # which the run refuses
    assert cache_root().name == "boosters-eval"
    monkeypatch.delenv("BOOSTERS_EVAL_HOME")
    assert cache_root().name == "boosters-eval"


def test_data_that_is_not_here_is_refused_with_its_reason(cache):
    config = config_of((X, Y), available=lambda: "Data set 'mine' is on holiday.")
    with pytest.raises(DatasetError, match="on holiday"):
        materialize(config)


def test_a_subsample_keeps_every_column_aligned(cache):
    groups = np.repeat(np.arange(8), 5)
    y = np.arange(40) % 3
    table = Table(
        X, y, weights=np.arange(40) + 1.0, groups=groups, sensitive=np.arange(40) % 2, split=np.arange(40) % 2
    )
    small = open_stored(materialize(config_of(table, Task.RANKING, subsample=22)).path)
    assert len(small.y) == 20
    rows = (small.weights - 1).astype(int)
    assert np.array_equal(small.x, X[rows].astype(np.float32))
    assert np.array_equal(small.groups, groups[rows])
    assert np.array_equal(small.y, y[rows])
    assert np.array_equal(small.sensitive, rows % 2)
    assert np.array_equal(small.split, rows % 2)


def test_a_subsample_of_more_rows_than_there_are_is_all_of_them(cache):
    assert materialize(config_of((X, Y), subsample=100)).n_samples == 40


def test_a_data_frame_keeps_its_names_and_categories(cache):
    frame = pd.DataFrame({"size": [1.5, None] * 10, "kind": ["b", "a", None, "c"] * 5, "ok": [True, False] * 10})
    stored = materialize(config_of((frame, np.arange(20.0))))
    table = open_stored(stored.path)
    assert stored.feature_names == ("size", "kind", "ok")
    assert stored.categorical == (1,)
    assert stored.has_missing
    assert table.category_names == {"kind": ["a", "b", "c"]}
    assert table.x[:4, 1].tolist()[:2] == [1, 0]
    assert np.isnan(table.x[2, 1])
    assert table.x[:2, 2].tolist() == [1, 0]


def test_categorical_columns_may_be_declared_by_name(cache):
    x = np.column_stack([X[:, 0], np.arange(40) % 4])
    stored = materialize(config_of((x, Y), feature_names=("a", "b"), categorical=("b",)))
    assert stored.categorical == (1,)


def bad(**parts):
    return {"raw": table_of(**parts)}


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ({"raw": 7}, r"must return \(x, y\) or a Table. Got int"),
        ({"raw": (X, Y, Y)}, r"must return \(x, y\) or a Table. Got tuple"),
        ({"raw": (X.astype(str), Y)}, "The x of data set 'mine' must be numbers"),
        ({"raw": (X, np.array(["a"] * 40))}, "The y of data set 'mine' must be numbers"),
        ({"raw": (X[0], Y)}, r"The x of data set 'mine' must have 2 dimension\(s\). Got 1"),
        ({"raw": (X, X)}, r"The y of data set 'mine' must have 1 dimension\(s\). Got 2"),
        ({"raw": (X, X), "targets": ("a", "b")}, "The y of data set 'mine' must have 2 columns. Got 3"),
        ({"raw": (X, Y), "targets": ("a", "b")}, r"The y of data set 'mine' must have 2 dimension\(s\). Got 1"),
        ({"raw": (X, X), "targets": ("a", "b", "c"), "task": Task.QUANTILE}, "several targets for regression only"),
        ({"raw": (X, np.abs(X) * [1, 0, 1]), "targets": ("a", "b", "c")}, r"is constant \(0\)"),
        ({"raw": (X[:0], Y[:0])}, "is empty"),
        ({"raw": (X[:, :0], Y)}, "is empty"),
        ({"raw": (X[:1], Y[:1])}, "at least 2 rows. Got 1"),
        ({"raw": (X, Y[:-1])}, "The y of data set 'mine' must have 40 rows, as many as x. Got 39"),
        (bad(weights=np.ones(3)), "The weights of data set 'mine' must have 40 rows"),
        (bad(weights=-np.ones(40)), "must be finite, not negative, and not all zero"),
        (bad(weights=np.zeros(40)), "must be finite, not negative, and not all zero"),
        (bad(x=np.full((40, 2), np.inf)), "must be finite in float32"),
        (bad(x=np.full((40, 2), 1e39)), "must be finite in float32"),
        (bad(y=np.full(40, np.nan)), "The y of data set 'mine' must be finite"),
        (bad(y=np.full(40, 2.5)), r"is constant \(2.5\)"),
        (bad(feature_names=("a",)), "must have 3 feature names. Got 1"),
        (bad(feature_names=("a", "b", "a")), "feature names of data set 'mine' must be unique"),
        (bad(categorical=(9,)), "column 9 cannot be categorical"),
        (bad(categorical=(0,)), "Column 0 of data set 'mine' must hold category codes"),
        ({"raw": (X, Y), "categorical": ("c",)}, "no column 'c' that could be categorical"),
        ({"raw": (X, Y), "n_samples": 41}, "declared to have 41 rows. Got 40"),
        ({"raw": (X, Y), "n_features": 4}, "declared to have 4 columns. Got 3"),
        ({"raw": (np.where(X > 1, np.nan, X), Y), "has_missing": False}, "declared to have no missing values"),
        ({"raw": (X, np.zeros(40)), "task": Task.BINARY}, r"is constant \(0\)"),
        ({"raw": (X, np.arange(40) % 2 + 1), "task": Task.BINARY}, "must be 0 .. K-1. Got 1, 2"),
        ({"raw": (X, np.arange(40) % 2 / 2), "task": Task.BINARY}, "must be 0 .. K-1. Got 0, 0.5"),
        ({"raw": (X, np.arange(40) % 3), "task": Task.BINARY}, "must have 2 classes. Got 3"),
        ({"raw": (X, np.arange(40) % 3), "task": Task.MULTICLASS, "n_classes": 4}, "declared to have 4 classes. Got 3"),
        ({"raw": (X, Y), "task": Task.QUANTILE}, "needs 'quantiles'"),
        ({"raw": (X, np.arange(40)), "task": Task.RANKING}, "needs groups"),
        ({**bad(y=np.arange(40), groups=np.arange(40) % 2), "task": Task.RANKING}, "must be adjacent"),
        ({**bad(y=np.arange(40), groups=np.ones(40)), "task": Task.RANKING}, "at least 2 queries. Got 1"),
        ({**bad(groups=np.arange(40)), "task": Task.RANKING}, "must be whole numbers from 0"),
    ],
)
def test_what_is_wrong_with_data_is_told_in_one_sentence(cache, case, sentence):
    raw = case.pop("raw")
    with pytest.raises(DatasetError, match=sentence) as caught:
        materialize(config_of(raw, case.pop("task", Task.REGRESSION), **case))
    assert "\n" not in str(caught.value)


def test_more_than_two_to_the_31_cells_are_refused(cache):
    x = np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.float32), (2**16, 2**15 + 1), (0, 0))
    with pytest.raises(DatasetError, match=r"65536 x 32769 cells: more than 2\*\*31"):
        materialize(config_of((x, np.arange(2**16))))


def test_a_loader_that_fails_is_named_with_its_error(cache):
    with pytest.raises(DatasetError, match="The loader of data set 'mine' failed: ZeroDivisionError: division by zero"):
        materialize(factories.dataset("mine", loader=lambda: 1 / 0))
    with pytest.raises(UnknownNameError):
        materialize(factories.dataset("mine", loader=lambda: DATASETS["nothing"]))


def test_files_in_the_cache_are_readable_by_others(cache):
    stored = materialize(config_of((X, Y)))
    assert stored.path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("content", ["/dev/zero", "/dev/full", "itself", "pipe"])
def test_recipe_that_is_no_file_is_replaced(cache, content):
    config, calls = counted((X, Y), "1")
    stored = materialize(config)
    (recipe,) = (stored.path.parents[1] / "recipes").iterdir()
    recipe.unlink()
    if content == "pipe":
        os.mkfifo(recipe)
    else:
        recipe.symlink_to(recipe if content == "itself" else content)
    for _ in range(2):
        store._DONE.clear()
        assert materialize(config) == stored
    assert len(calls) == 2
    assert recipe.read_text().strip() == stored.digest
