import os

from boosters_eval.core.distributions import find_distribution, installed_version


def install(folder, version):
    place = folder / f"acme-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme\nVersion: {version}\n", encoding="utf-8")
    return place


def test_version_follows_what_is_installed_while_the_program_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_version("acme") is None
    first = install(tmp_path, "1.0")
    assert installed_version("acme") == "1.0"
    (first / "METADATA").unlink()
    first.rmdir()
    install(tmp_path, "1.1")
    os.utime(tmp_path, (1, 1))  # a file system may count in seconds
    assert installed_version("acme") == "1.1"


def test_missing_distribution_is_none():
    assert find_distribution("no-such-distribution") is None
