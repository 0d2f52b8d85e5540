"""Builds are installed on first use, into their own folders, and used only as they were installed."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import zipfile
from pathlib import Path

import pytest

from boosters_eval import BuildError, ConfigError, add_builds
from boosters_eval.core import commands
from boosters_eval.core.terms import listen
from boosters_eval.runners.builds import install as installing
from boosters_eval.runners.builds import install as pip
from boosters_eval.runners.builds.install import BuildOrder, install_order, install_reference
from boosters_eval.runners.builds.reference import parse_reference
from boosters_eval.runners.builds.sources import digest_files, digest_source
from boosters_eval.runners.builds.store import find_build, find_damaged, lock_build, remove_build, scan_builds
from boosters_eval.runners.installed import installed_build, library_digest
from toys import code, write_runner, write_source, write_wheel


def install(text, home, said=None, **options):
    reference = parse_reference(text)
    with listen(None if said is None else said.append):
        return install_reference(reference, home=home, **options)


def listing(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_two_at_once_install_once_and_the_second_uses_what_the_first_installed(shelf):
    said, found = [], []
    workers = [threading.Thread(target=lambda: found.append(install(shelf.old, shelf.home, said))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len([text for text in said if text.startswith("Installing ")]) <= 1
    assert found[0] == found[1]
    assert (found[0].record.version, found[0].record.distribution) == ("1.0", "toybooster")
    assert listing(found[0].site) == ["toybooster", "toybooster-1.0.dist-info"]


def test_who_waits_for_the_installation_of_another_says_so(shelf, tmp_path):
    order = BuildOrder(parse_reference(shelf.old).runner, "commit", "abc", "toy@abc", [])
    said, waiting = [], threading.Event()

    def hear(text):
        said.append(text)
        waiting.set()

    def wait():
        with pytest.raises(BuildError, match="toy@abc cannot be installed"), listen(hear):
            install_order(order, home=tmp_path)

    worker = threading.Thread(target=wait)
    with lock_build(order.build_id, tmp_path):
        worker.start()
        assert waiting.wait(60)
        with pytest.raises(BuildError, match="is being installed, so it was not removed"):
            remove_build(tmp_path / "builds" / order.build_id)
    worker.join()
    assert said == ["Waiting for another process, which is installing toy@abc ...", "Installing toy@abc ..."]


def test_no_setting_of_the_user_installs_elsewhere_and_the_environment_stays_as_it_is(shelf, tmp_path, monkeypatch):
    here, elsewhere = sysconfig.get_path("purelib"), tmp_path / "elsewhere"
    settings = tmp_path / "pip.conf"
    places = f"target = {elsewhere}\nprefix = {elsewhere}\nuser = true\nrequire-virtualenv = true\n"
    settings.write_text(f"[install]\n{places}")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONUSERBASE"):
        monkeypatch.setenv(name, str(elsewhere))
    for name in ("PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_DRY_RUN"):
        monkeypatch.setenv(name, "1")
    before = listing(here)
    build = install(f"{shelf.library}@{write_wheel(tmp_path, '7.0')}", tmp_path / "home")
    assert build.record.version == "7.0"
    assert listing(here) == before
    assert not elsewhere.exists()


def test_what_the_configuration_of_pip_adds_is_no_part_of_a_build(shelf, tmp_path, monkeypatch):
    (tmp_path / "more.txt").write_text(f"{write_wheel(tmp_path, '4.2', name='helper', package='helper')}\n")
    (tmp_path / "pip.conf").write_text(f"[install]\nrequirement = {tmp_path}/more.txt\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    with pytest.raises(BuildError, match=r"cannot be used: pip has installed helper as well, which its configuration"):
        install(shelf.old, tmp_path / "home")
    assert scan_builds(tmp_path / "home") == []


def test_an_interrupted_pip_takes_along_what_it_has_started(tmp_path, monkeypatch):
    started = tmp_path / "started"
    interpreter = tmp_path / "python"
    told = f"echo $! > {started}.part\nmv {started}.part {started}"
    interpreter.write_text(f"#!/bin/sh\nsleep 600 &\nsleep 0.3\n{told}\nwait\n")
    interpreter.chmod(0o700)

    def interrupt(*_):
        if started.exists():
            signal.setitimer(signal.ITIMER_REAL, 0)  # once: a second one would meet the cleaning up
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with pytest.raises(KeyboardInterrupt):
            pip.run_pip("install")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    compiler = Path("/proc", started.read_text().strip(), "stat")
    deadline = time.monotonic() + 60
    while compiler.exists() and compiler.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_edited_build_is_noticed_and_installed_again(shelf):
    build = install(shelf.old, shelf.home)
    file = build.site / "toybooster" / "__init__.py"
    file.write_text(code(99.0))
    assert not build.is_whole()
    said = []
    again = install(shelf.old, shelf.home, said)
    assert "have changed since it was installed" in said[0]
    assert file.read_text() == code(0.0)
    assert again.is_whole()
    record = (build.folder / "build.json").read_text()
    (build.folder / "build.json").write_text("{")
    assert build.folder in find_damaged(shelf.home)
    (build.folder / "build.json").write_text(record.replace('"toybooster"', '"toyboosted"'))
    assert build.folder in find_damaged(shelf.home), "it does not say what it said"
    (build.folder / "build.json").write_text(record)


def test_the_bytecode_that_an_import_writes_and_a_copied_store_change_nothing(shelf):
    build = install(shelf.old, shelf.home)
    subprocess.run([sys.executable, "-c", "import toybooster"], env={"PYTHONPATH": str(build.site)}, check=True)
    file = build.site / "toybooster" / "__init__.py"
    os.utime(file, (1, 1))
    assert build.is_whole()


def test_an_interrupted_installation_leaves_nothing_that_counts(shelf, tmp_path, monkeypatch):
    def interrupted(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(installing, "run_pip", interrupted)
    runner = parse_reference(shelf.old).runner
    order = BuildOrder(runner, "commit", "abc", "toy@abc", ["toybooster==1"])
    with pytest.raises(KeyboardInterrupt):
        install_order(order, home=tmp_path)
    assert scan_builds(tmp_path) == find_damaged(tmp_path) == []
    left = tmp_path / "builds" / f".{order.build_id}-0123"  # of one that was killed
    left.mkdir()
    assert find_damaged(tmp_path) == [left]
    remove_build(left)
    assert find_damaged(tmp_path) == []


def test_a_build_that_cannot_be_imported_is_one_sentence_that_offers_an_environment_of_its_own(tmp_path):
    wheel = write_wheel(tmp_path, text="import a_module_that_nobody_has\n")
    text = f"{write_runner(tmp_path)}@{wheel}"
    with pytest.raises(BuildError) as caught:
        install(text, tmp_path)
    assert "cannot be imported: ModuleNotFoundError: No module named 'a_module_that_nobody_has'." in str(caught.value)
    assert str(caught.value).endswith(f"boosters-eval builds add '{text}' --isolated")
    assert scan_builds(tmp_path) == find_damaged(tmp_path) == []


def test_a_wheel_of_another_python_says_what_pip_said_last(shelf, tmp_path):
    with pytest.raises(BuildError) as caught:
        install(f"{shelf.library}@{write_wheel(tmp_path, tag='cp27-cp27m-win32')}", tmp_path)
    first, *others = caught.value.lines
    assert first.endswith("cannot be installed; pip says:")
    assert "is not a supported wheel on this platform" in others[-1]
    assert caught.value.exit_code == 2


@pytest.mark.slow
def test_a_version_that_no_distribution_has_is_looked_for_under_each_name(shelf, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    write_wheel(tmp_path, "3.0", name="toybooster_other")
    assert install(f"{shelf.library}==3.0", tmp_path / "home").record.distribution == "toybooster_other"
    with pytest.raises(BuildError) as caught:
        install(f"{shelf.library}==9.9", tmp_path / "home")
    assert "No matching distribution found" in caught.value.lines[-1]


def test_a_source_folder_is_known_by_its_content_and_built_again_when_that_changes(tmp_path, monkeypatch):
    library = write_runner(tmp_path)
    folder = write_source(tmp_path / "src", "2.0")
    text = f"{library}@{folder}"
    first = install(text, tmp_path)
    (folder / "build").mkdir()
    (folder / "build" / "lib.txt").touch()  # what a build tool leaves there
    said = []
    assert install(text, tmp_path, said) == first
    assert said == []
    write_source(folder, "2.0", shift=0.25)
    monkeypatch.setattr(commands, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match=r"installed by pip or uv, and .* has neither"):
        install(text, tmp_path)  # it is another build, which pip would have to make


def test_offline_it_says_so_and_looks_under_no_other_name():
    offline = pip.PipResult(
        1, "WARNING: Retrying (Retry(total=4)) after\nERROR: No matching distribution found for a==1"
    )
    assert offline.is_offline
    assert not offline.is_unknown
    assert pip.PipResult(1, "ERROR: No matching distribution found for a==1").is_unknown
    many = ", ".join(f"1.{i}" for i in range(50))
    full = pip.PipResult(1, f"shutil.Error: [{'No space left on device ' * 99}]")
    assert full.is_full
    assert len(full.last_lines[0]) < 500
    shown = pip.PipResult(1, f"ERROR: Could not find a version (from versions: {many})").last_lines
    assert shown == ["ERROR: Could not find a version (from versions: ..., 1.44, 1.45, 1.46, 1.47, 1.48, 1.49)"]


def test_wheel_whose_metadata_inflates_is_refused_before_pip_reads_them(tmp_path):
    library = write_runner(tmp_path)
    wheel = write_wheel(tmp_path / "wheels", "1.0")
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toybooster-1.0.dist-info/entry_points.txt", "a" * 20_000_000)
    with pytest.raises(
        BuildError, match=r"has 20 MB in toybooster-1\.0\.dist-info/entry_points\.txt, more than any wheel needs"
    ):
        install(f"{library}@{wheel}", tmp_path / "home")


def test_traceback_of_pip_itself_is_its_last_line(tmp_path):
    library = write_runner(tmp_path)
    wheel = write_wheel(tmp_path / "wheels", "1.0")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, b"" if name.endswith("METADATA") else content)
    with pytest.raises(BuildError) as caught:
        install(f"{library}@{wheel}", tmp_path / "home")
    assert len(caught.value.lines) > 1
    assert not any("File " in line or "^^" in line for line in caught.value.lines)


def test_an_environment_without_pip_takes_the_one_that_python_carries(monkeypatch):
    monkeypatch.setattr(commands, "has_pip", lambda: False)
    done = pip.run_pip("--version")
    assert done.code == 0
    assert "ensurepip" in done.output
    assert sys.executable.rpartition("/")[0] not in done.output


def test_an_environment_without_pip_takes_uv_where_that_is(tmp_path, monkeypatch):
    library = write_runner(tmp_path)
    wheel = write_wheel(tmp_path, "1.0")
    monkeypatch.setattr(pip, "has_pip", lambda: False)
    monkeypatch.setenv("PATH", os.pathsep.join([sys.exec_prefix + "/bin", os.environ["PATH"]]))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setattr(pip, "run_pip", lambda *_: pytest.fail("uv is here"))
    assert install(f"{library}@{wheel}", tmp_path).record.version == "1.0"
    with pytest.raises(BuildError, match=r"cannot be installed because an index that uv looks at cannot be reached"):
        install(f"{library}==7.0", tmp_path)


def test_in_a_repository_the_neighbors_of_a_folder_count_but_not_what_is_ignored(tmp_path):
    folder = write_source(tmp_path / "python")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "core.rs").write_text("1")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "core.rs"], check=True)

    def now():
        return digest_source(digest_files(folder))

    before = now()
    (tmp_path / "noise.log").write_text("ignored")
    assert now() == before
    (tmp_path / "core.rs").write_text("2")
    changed = now()
    assert changed != before
    (tmp_path / "new.rs").write_text("untracked, but not ignored")
    assert now() not in {before, changed}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_DIR", "../other/.git"),
        ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"),
        ("PATH", "/nowhere"),
    ],
)
def test_neighbors_count_also_in_a_hook_and_where_git_is_missing_or_refuses(tmp_path, monkeypatch, name, value):
    root = tmp_path / "mine"
    folder = write_source(root / "python")
    (root / "core.rs").write_text("1")
    (root / ".gitignore").write_text("*.rs\n")
    for repository in (root, tmp_path / "other"):
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run(["git", "-C", str(root), "add", "-f", "core.rs"], check=True)
    monkeypatch.setenv(name, value)
    before = digest_files(folder)
    (root / "core.rs").write_text("2")
    assert digest_files(folder) != before
    assert digest_files(folder)["."] == "python"


@pytest.mark.parametrize("repository", [False, True])
def test_what_a_link_leads_to_outside_the_source_counts(tmp_path, repository):
    folder, shared = write_source(tmp_path / "src"), tmp_path / "shared"
    shared.mkdir()
    (shared / "core.c").write_text("1")
    (folder / "linked").symlink_to(shared)
    (folder / "one.c").symlink_to(shared / "core.c")
    (shared / "back").symlink_to(folder)
    (folder / "loop").symlink_to("loop")
    if repository:
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    before = digest_files(folder)
    (shared / "core.c").write_text("2")
    changed = {name for name, content in digest_files(folder).items() if before[name] != content}
    assert changed == {"linked/core.c", "one.c/"}


@pytest.mark.slow
def test_a_folder_that_is_edited_while_it_is_built_is_no_build(tmp_path):
    library = write_runner(tmp_path)
    folder = write_source(tmp_path / "src")
    backend = (folder / "backend.py").read_text()
    (folder / "backend.py").write_text(f"{backend}\nopen('toybooster/__init__.py', 'a').write('# edited')\n")
    with pytest.raises(BuildError, match=r"was changed while it was being built \(toybooster/__init__.py\)"):
        install(f"{library}@{folder}", tmp_path)
    assert scan_builds(tmp_path) == []


def test_an_isolated_build_holds_its_dependencies_and_stays_isolated_until_it_is_removed(shelf, tmp_path, monkeypatch):
    helper = write_wheel(tmp_path, "4.2", name="helper", package="helper")
    monkeypatch.setattr(installing, "list_requirements", lambda: [str(helper)])
    monkeypatch.setattr(installing.store, "find_import_fault", lambda *_: "")  # no numpy here: it would take a minute
    build = install(shelf.old, shelf.home, isolated=True)
    assert build.record.packages == {"helper": "4.2"}
    assert build.installation.isolated
    assert installed_build(parse_reference(shelf.old).runner.at("own", build.installation)).packages == "helper 4.2"
    assert install(shelf.old, shelf.home) == build
    remove_build(build.folder)
    plain = install(shelf.old, shelf.home)
    assert not plain.installation.isolated
    assert plain.record.digest != build.record.digest  # what it computes with counts too


def test_an_isolated_build_of_the_old_numpy_that_does_not_say_so_gets_it(shelf, tmp_path, monkeypatch):
    helper = write_wheel(tmp_path, "1.9", name="numpy", package="helper")
    monkeypatch.setattr(installing, "list_requirements", list)
    faults = [
        "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header",
        "",
    ]
    monkeypatch.setattr(installing.store, "find_import_fault", lambda *_: faults.pop(0))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(helper.parent))
    build = install(shelf.old, tmp_path / "home", isolated=True)
    assert build.record.packages == {"numpy": "1.9"}
    assert not faults


def test_the_dependencies_of_this_program_are_those_without_an_extra():
    names = {re.match(r"[A-Za-z0-9-]+", text)[0].lower() for text in installing.list_requirements()}
    assert {"numpy", "scipy", "pandas", "scikit-learn", "pydantic"} <= names
    assert not names & {"pytest", "xgboost-cpu", "lightgbm", "ruff"}


def test_an_installed_library_and_its_build_have_one_digest(tmp_path):
    """By the same formula: what pip writes beside the files of a library does not count."""
    pytest.importorskip("boosters")
    from boosters_eval.runners import RUNNERS
    from boosters_eval.runners.installed import digest_in

    runner = RUNNERS["boosters"]
    assert digest_in(runner, sysconfig.get_path("platlib")) == library_digest(runner)


def test_of_a_plain_and_an_isolated_build_one_must_be_named_by_its_id(shelf, tmp_path):
    add_builds([shelf.old], home=shelf.home)
    record = find_build(shelf.old, shelf.home).record
    for build_id, isolated in (("aaaa1111", False), ("bbbb2222", True)):
        folder = tmp_path / "builds" / build_id
        folder.mkdir(parents=True)
        copy = record.model_copy(update={"build_id": build_id, "isolated": isolated})
        (folder / "build.json").write_text(copy.sealed().model_dump_json())
    with pytest.raises(ConfigError, match="There are 2 builds") as caught:
        find_build(record.reference, tmp_path)
    assert "bbbb2222 (isolated)" in str(caught.value)
    assert str(caught.value).endswith("; see 'boosters-eval builds list'.")
    assert find_build("bbbb", tmp_path).record.isolated


def test_added_builds_are_told_and_found_however_their_path_is_spelt(shelf, monkeypatch):
    found = add_builds([shelf.old, f"new={shelf.new}"], home=shelf.home)
    assert [build.record.version for build in found.builds] == ["1.0", "1.1"]
    heard = []
    with listen(heard.append):
        add_builds(shelf.old, home=shelf.home)
    assert heard == []  # it is there
    assert find_build(shelf.new, shelf.home).record.version == "1.1"
    monkeypatch.chdir(shelf.folder)
    for text in ("toy_runner.py:ToyRunner@./toybooster-1.1-py3-none-any.whl", "x=toy@toybooster-1.1-py3-none-any.whl"):
        assert find_build(text, shelf.home).record.version == "1.1"
    with pytest.raises(ConfigError, match=r"There is no build 'boosters@toybooster-1\.1"):
        find_build("boosters@toybooster-1.1-py3-none-any.whl", shelf.home)
    assert json.loads((find_build(shelf.new, shelf.home).folder / "build.json").read_text())["schema_version"] == 2
