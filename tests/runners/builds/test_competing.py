"""Builds compete like libraries: each in its own lane, under its own name, with its own version."""

import csv
import io
import threading
from pathlib import Path

import pytest

from boosters_eval import (
    BuildError,
    ConfigError,
    load_run,
    prepare_comparison,
    prepare_importances,
    prepare_suite,
    run_importances,
    run_prepared,
)
from boosters_eval.core import commands
from boosters_eval.engine.cell import Installation
from boosters_eval.programs.baseline.commands import plan_run
from boosters_eval.programs.baseline.request import CheckRequest
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.install import resolve_build, resolve_competitors
from boosters_eval.runners.builds.store import find_build, remove_build
from boosters_eval.runners.measure import request_for
from factories import config, suite
from tiny import TINY
from toys import write_runner, write_source


@pytest.fixture
def toys(shelf, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(shelf.home))
    return shelf


def builds_of(prepared):
    return prepared.plan.builds["fit"]


def test_two_builds_of_one_library_are_explained_side_by_side(toys, kept_pool):
    named = [toys.old, f"new={toys.new}"]
    found = run_importances(prepare_importances(TINY, named, seeds=1, home=toys.home, permutations=2))
    assert {result.library: result.library_version for result in found.results} == {"toy@1.0": "1.0", "new": "1.1"}
    for result in found.results:
        assert not found.importances(result, "permutation").any()  # it predicts one and the same for every row
        assert result.kinds["shap"].reason == "the runner of toy offers no attributions"


def test_two_builds_of_one_library_are_two_competitors_and_reports_outlive_them(toys, kept_pool):
    results = run_prepared(prepare_comparison(TINY, [toys.old, f"new={toys.new}"], seeds=2, home=toys.home))
    values = {(result.library, result.seed): result.metrics["rmse"] for result in results.results}
    seeds = {(result.library, result.seed): result.model_seed for result in results.results}
    used = sorted({seed for _, seed in values})
    assert all(values["new", seed] != values["toy@1.0", seed] for seed in used)
    assert all(seeds["new", seed] == seeds["toy@1.0", seed] for seed in used)  # equal code would predict the same
    assert {result.library: result.native_params["version"] for result in results.results} == {
        "toy@1.0": "1.0",
        "new": "1.1",
    }

    remove_build(find_build(toys.new, toys.home).folder)
    again = load_run(results.run_id, toys.home)
    assert "| toy@1.0" in build_tables(again).to_markdown()
    assert "toy@1.0" in build_document(again, "comparison").to_html()
    assert {row["library"] for row in csv.DictReader(io.StringIO(again.to_csv()))} >= {"toy@1.0", "new"}


def names_of(items):
    return [runner.name for runner in resolve_competitors(items).values()]


def test_the_plan_says_what_a_build_is_a_build_of_and_its_digest_decides_the_run(toys):
    first = prepare_comparison(TINY, [f"mine={toys.old}"], seeds=1)
    assert builds_of(first)["mine"].library == "toy"
    assert builds_of(first)["mine"].version == "1.0"
    assert prepare_comparison(TINY, [f"mine={toys.old}"], seeds=1).plan.run_id == first.plan.run_id
    other = prepare_comparison(TINY, [f"mine={toys.new}"], seeds=1)
    assert other.plan.run_id != first.plan.run_id
    assert other.plan.keys == first.plan.keys


def test_builds_of_one_version_whose_files_differ_are_different_runs():
    library, found = RUNNERS["lightgbm"], []
    for digest in ("0" * 16, "1" * 16):
        installation = Installation(library="lightgbm", version="4.7.0", digest=digest, path=("/nowhere",))
        found.append(prepare_comparison(TINY, [library.at("mine", installation)], seeds=1).plan)
    assert found[0].keys == found[1].keys
    assert found[0].run_id != found[1].run_id


def test_the_same_build_under_two_names_has_identical_predictions(toys):
    results = run_prepared(prepare_comparison(TINY, [f"a={toys.old}", f"b={toys.old}"], seeds=2))
    assert [result.library for result in results.results].count("a") == 2
    notes = {pair.note for table in build_tables(results).tables for pair in table.pairs}
    assert notes == {"Identical predictions in all 2 splits."}


def test_two_builds_under_one_name_are_refused_before_anything_is_installed(toys, tmp_path):
    with pytest.raises(ConfigError, match=r"Two competitors are named 'mine'.* give one of them another name, as in"):
        resolve_competitors([f"mine={toys.old}", f"mine={toys.new}"], tmp_path)
    with pytest.raises(ConfigError, match=r"no file or folder .*nowhere\.whl"):
        resolve_competitors([toys.old, f"{toys.library}@nowhere.whl"], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_build_may_take_the_place_of_its_library_where_it_is_asked_to(toys):
    (runner,) = resolve_competitors([f"toy={toys.old}"]).values()
    assert (runner.name, runner.version()) == ("toy", "1.0")
    (installed,) = resolve_competitors(["toy"]).values()
    assert installed.installation is None


def test_a_suite_may_name_builds_which_are_not_installed_if_others_are_asked_for(toys):
    named = suite(config(TINY, libraries=(toys.old, f"new={toys.new}")))
    assert builds_of(prepare_suite(named, 1)).keys() == {"toy@1.0", "new"}
    unbuildable = suite(config(TINY, libraries=("boosters@/nowhere",)))
    assert builds_of(prepare_suite(unbuildable, 1, [toys.old])).keys() == {"toy@1.0"}
    prepared, restriction = plan_run(CheckRequest(suite=named, libraries=(f"new={toys.new}",)))
    assert builds_of(prepared).keys() == {"new"}
    assert restriction["only_libraries"] == ("new",)


def test_a_changed_folder_is_looked_at_again_although_its_label_is_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    library = write_runner(tmp_path)
    write_source(tmp_path / "src", "1.0")
    text = f"{library.replace(str(tmp_path) + '/', '')}@src"
    before = resolve_build(text, home=tmp_path).installation
    write_source(tmp_path / "src", "2.0", shift=1.0)
    monkeypatch.setattr(commands, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match="installed by pip or uv"):  # it is another build, which pip would have to make
        resolve_competitors([text], tmp_path)
    assert names_of([RUNNERS["toy"].at("toy@src", before)]) == ["toy@src"]  # a class is not looked for again


def test_the_mapping_table_is_chosen_by_the_version_of_the_build():
    runner = RUNNERS["lightgbm"]
    old = runner.at("old", Installation(library="lightgbm", version="0.1", digest="0" * 16, path=("/x",)))
    assert (old.name, old.library(), old.version(), old.missing()) == ("old", "lightgbm", "0.1", None)
    assert runner.library() == runner.name == "lightgbm"
    marks = old.translate(request_for(config(TINY))).marks
    assert marks[0].parameter == "version"
    assert "0.1 is outside the range" in marks[0].reason


def test_a_prepared_run_keeps_its_build_whatever_the_label_means_by_then(toys, kept_pool, tmp_path):
    prepared = prepare_comparison(TINY, [f"mine={toys.old}"], seeds=1, home=tmp_path)
    prepare_comparison(TINY, [f"mine={toys.new}"], seeds=1, home=tmp_path)
    assert {result.library_version for result in run_prepared(prepared).results} == {"1.0"}


def test_a_build_of_its_librarys_name_runs_although_another_is_installed_by_then(toys, kept_pool, monkeypatch):
    prepared = prepare_comparison(TINY, [f"toy={toys.old}"], seeds=1)
    monkeypatch.syspath_prepend(resolve_build(f"new={toys.new}").installation.path[0])  # as if it were installed
    assert {result.library_version for result in run_prepared(prepared).results} == {"1.0"}


def test_two_threads_that_use_one_name_each_get_the_build_that_they_named(toys):
    named, found = threading.Barrier(2), {}

    def compete(text):
        resolve_competitors([f"mine={text}"])
        named.wait(60)
        found[text] = prepare_comparison(TINY, [f"mine={text}"], seeds=1).plan.builds["fit"]["mine"].version

    threads = [threading.Thread(target=compete, args=(text,)) for text in (toys.old, toys.new)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {toys.old: "1.0", toys.new: "1.1"}


def test_a_build_that_was_edited_since_it_was_named_runs_no_cell(toys, kept_pool):
    prepared = prepare_comparison(TINY, [f"mine={toys.old}"], seeds=1)
    mine = resolve_build(f"mine={toys.old}")
    file = Path(mine.installation.path[0], "toybooster", "__init__.py")
    content = file.read_text()
    file.write_text("SHIFT = 7.0\n")
    assert "have changed since it was named" in run_prepared(prepared).errors[0].error_message
    with pytest.raises(BuildError, match=r"mine: the files of its build in .* have changed since it was named; name"):
        resolve_competitors([mine])
    file.write_text(content)
    assert names_of([f"mine={toys.old}"]) == ["mine"]  # its content is what it was
