"""Inputs by digest: read once, verified, moved into place whole, and never written outside of their folder."""

import hashlib
import os
import time

import pytest
from dask import config as dask_config
from hypothesis import given
from hypothesis import strategies as st

import boosters_eval
from boosters_eval import ConfigError
from boosters_eval.cluster.link import find_scheduler
from boosters_eval.cluster.messages import KEPT_S, Item, Manifest, Parcels, Question, Store, resolve_inside
from boosters_eval.cluster.node import introduce


def folder_of(root, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def sent(parcel, store):
    for piece in parcel.pieces():
        store.receive(parcel.digest, *piece)
    return store.complete(parcel.digest, parcel.manifest)


@given(st.dictionaries(st.sampled_from(["a", "b/c", "b/d.npy", "e"]), st.binary(max_size=50)), st.integers(1, 20))
def test_folder_arrives_as_it_left(tmp_path_factory, files, chunk):
    tmp_path = tmp_path_factory.mktemp("x")
    source = folder_of(tmp_path / "data", files)
    source.mkdir(exist_ok=True)
    parcel, store = Parcels().of(str(source)), Store(tmp_path / "store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("boosters_eval.cluster.messages.CHUNK", chunk)
        assert store.find(parcel.digest) is None
        assert sent(parcel, store) == ""
    found = store.find(parcel.digest)
    assert found.name == "data"
    assert {p.relative_to(found).as_posix(): p.read_bytes() for p in found.rglob("*") if p.is_file()} == files
    assert [path.name for path in (tmp_path / "store").iterdir()] == [parcel.digest]


def test_file_arrives_with_its_name(tmp_path):
    (tmp_path / "model.json").write_text("{}")
    parcel, store = Parcels().of(str(tmp_path / "model.json")), Store(tmp_path / "store")
    assert sent(parcel, store) == ""
    assert store.find(parcel.digest).name == "model.json"
    assert store.find(parcel.digest).read_text() == "{}"
    assert sent(parcel, store) == ""  # by another worker at the same time, say


def test_content_that_changed_on_its_way_is_refused(tmp_path):
    parcel, store = Parcels().of(str(folder_of(tmp_path / "data", {"a": b"12"}))), Store(tmp_path / "store")
    store.receive(parcel.digest, "a", 0, b"13")
    assert store.complete(parcel.digest, parcel.manifest) == "data has changed on its way: the digest of a is another"
    assert list((tmp_path / "store").iterdir()) == []


def test_what_no_run_has_used_for_weeks_is_removed(tmp_path):
    Store(tmp_path / "nowhere").clean()
    root = tmp_path / "store"
    store = Store(root)
    digests = []
    for name in ("old", "used", "new"):
        parcel = Parcels().of(str(folder_of(tmp_path / name, {"a": name.encode()})))
        assert sent(parcel, store) == ""
        digests.append(parcel.digest)
    (root / "plain").touch()  # of a network's file system, say
    store.receive("half", "a", 0, b"1")
    (half,) = root.glob(".arriving-*")
    long_ago = time.time() - KEPT_S - 60
    for path in (root / digests[0], root / digests[1], root / "plain", half):
        os.utime(path, (long_ago, long_ago))
    assert store.find(digests[1]) is not None
    store.clean()
    assert {path.name for path in root.iterdir()} == {*digests[1:], "plain"}
    assert (store.find(digests[1]) / "a").read_bytes() == b"used"


def test_what_has_not_arrived_wholly_is_removed_after_an_error_and_at_the_end(tmp_path):
    store = Store(tmp_path)
    store.receive("other", "a", 0, b"1")
    store.receive("full", "a", 0, b"1")
    with pytest.raises(OSError, match="File exists"):
        store.receive("full", "a/b", 0, b"1")
    assert len(list(tmp_path.iterdir())) == 1
    store.receive("full", "a", 0, b"1")  # it is sent again
    store.forget()
    assert not list(tmp_path.iterdir())


def test_digest_is_taken_once_and_again_after_a_change(tmp_path, monkeypatch):
    source, parcels = folder_of(tmp_path / "data", {"a": b"1"}), Parcels()
    first = parcels.of(str(source))
    assert parcels.of(str(source)) is first
    (source / "a").write_bytes(b"22")
    assert parcels.of(str(source)).digest != first.digest


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x"])
def test_path_that_leads_out_of_its_folder_is_refused(tmp_path, path):
    with pytest.raises(ValueError, match="is not inside of its folder"):
        resolve_inside(tmp_path, path)
    manifest = Manifest(name="x", folder=True, items=(Item(path=path, size=1, digest="1"),))
    with pytest.raises(ValueError, match="is not inside of its folder"):
        Store(tmp_path).complete("d", manifest)


def question(**changes):
    """As it is sent."""
    known = {
        "run": "1",
        "version": boosters_eval.__version__,
        "lanes": (),
        "files": {},
        "timeout_s": None,
        "device": False,
    }
    return Question(**known | changes).model_dump_json()


def test_node_of_another_version_names_both():
    (fault,) = introduce(question(version="9.9")).faults
    assert fault == f"the plan is of boosters-eval 9.9, the node has {boosters_eval.__version__}"


def test_node_must_have_the_files_of_the_user(tmp_path):
    mine, other = tmp_path / "metric.py", tmp_path / "other.py"
    mine.write_text("a")
    files = {str(mine): hashlib.sha256(b"a").hexdigest(), str(other): "1"}
    assert introduce(question(files=files)).faults == (f"the plan uses {other}, which the node does not have",)
    mine.write_text("b")
    assert f"the node's {mine} is not that of the plan" in introduce(question(files=files)).faults


@pytest.mark.parametrize(
    "address",
    [
        *("", "18786", "5", ":8786", "inproc://x", "tcp://host", "tcp://host:99999", "http://host:1", "tcp://:1"),
        f"tcp://host:{'9' * 5000}",  # more digits than Python makes a number of
    ],
)
def test_address_that_no_scheduler_can_have_is_refused(address):
    with pytest.raises(ConfigError, match=f"such as tcp://host:8786\\. Got '{address}' instead"):
        find_scheduler(address, None, None)


@pytest.mark.parametrize("configured", ["", 8786, True, ["tcp://host:8786"]])
def test_address_of_the_configuration_is_named_as_such(configured):
    sentence = "The 'scheduler-address' of dask's configuration must be that of a dask scheduler, such as"
    with dask_config.set({"scheduler-address": configured}), pytest.raises(ConfigError) as caught:
        find_scheduler(None, None, None)
    assert str(caught.value) == f"{sentence} tcp://host:8786. Got {configured!r} instead."


def test_scheduler_file_that_is_deeper_than_any_is_refused(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="is not one that a dask scheduler writes"):
        find_scheduler(None, tmp_path / "deep.json", None)


@pytest.mark.parametrize("address", ["tcp://host:8786", "tls://1.2.3.4:1", "host:8786", "tcp://[::1]:8786"])
def test_address_of_a_scheduler_is_taken(address):
    assert find_scheduler(address, None, None) == address


def test_store_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file" / "nodes")
    assert store.find("d") is None
    assert store.complete("d", Manifest(name="x", folder=True, items=())) == "x cannot be stored: Not a directory"
