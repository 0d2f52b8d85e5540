"""What to do after a check: since when it is so, from runs that were written and not trained, and the next commands."""

import shlex
import shutil
import subprocess

import pytest

from boosters_eval.cli.app import run as run_cli
from boosters_eval.programs.baseline.advice import follow_up
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.findings import UNNAMED, CheckRules, Status
from boosters_eval.programs.baseline.snapshot import Snapshot, TakenBaseline, make_baseline
from boosters_eval.programs.benchmark.runs import collect
from factories import digest
from written_runs import written_run

OLD, NEW, OTHER = "old", "new", "other"


@pytest.fixture
def advise(tmp_path):
    """The check of the last of some runs against the first, by what each predicted: `new` is worse than all others."""

    def conclude(*predicted, versions=None, facts=None, name="b.json", rules=None, worse=0.6, forget=False, **changes):
        runs = []
        for day, said in enumerate(predicted, 1):
            known = {"version": versions[day - 1] if versions else "1.0", **changes}
            known |= {"facts": facts[day - 1]} if facts else {}
            value = worse if said == NEW else 0.5
            folder = written_run(tmp_path, day, value, predictions_digest=said and digest(said), **known)
            runs.append(collect(folder.load()))
        taken = TakenBaseline(make_baseline(runs[0]), name)
        if forget:
            shutil.rmtree(runs[0].folder.path)
        found = check(taken.snapshot, Snapshot.of_run(runs[-1]), rules, name)
        return follow_up(found, taken, runs[-1], tmp_path), runs

    return conclude


@pytest.fixture
def commits(tmp_path, monkeypatch):
    """Two commits of the sources of boosters, which are the working directory."""
    folder = tmp_path / "sources"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "pyproject.toml").write_text("[project]\nname = 'boosters'\n")
    git("init", "-q")
    git("add", ".")
    return [make_commit("one"), make_commit("two")]


def git(*arguments):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(["git", *who, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def make_commit(message):
    git("commit", "-q", "--allow-empty", "-m", message)
    return git("rev-parse", "--short", "HEAD")


def tell(run, day):
    return f"{run.run_id} (2026-01-{day:02} 12:00, commit c0ffee{day})"


def test_what_is_new_in_this_run_names_the_last_one_that_was_as_recorded(advise):
    found, runs = advise(OLD, OLD, NEW, versions=("1.0", "1.1", "1.2"))
    assert found.findings[0].since == f"new in this run; run {tell(runs[1], 2)} still predicted as recorded"


def test_the_first_run_that_predicts_the_same_is_named(advise):
    found, runs = advise(OLD, OLD, NEW, NEW, NEW, versions=("1.0", "1.1", "1.2", "1.3", "1.4"))
    assert found.findings[0].since == (
        f"since run {tell(runs[2], 3)}; run {tell(runs[1], 2)} still predicted as recorded"
    )


def test_earlier_attempts_of_the_same_run_tell_as_much(advise):
    found, runs = advise(OLD, OLD, NEW, NEW)  # one plan: four attempts
    assert {run.run_id for run in runs} == {runs[0].run_id}
    assert found.findings[0].since == (
        f"since run {tell(runs[2], 3)}; run {tell(runs[1], 2)} still predicted as recorded"
    )


def test_a_run_that_predicted_something_else_dates_nothing(advise):
    found, runs = advise(OLD, OTHER, NEW, NEW, versions=("1.0", "1.1", "1.2", "1.3"))
    assert (
        found.findings[0].since == f"since run {tell(runs[2], 3)}; run {tell(runs[0], 1)} still predicted as recorded"
    )


def test_without_a_run_as_recorded_it_is_so_at_least_since_the_earliest(advise):
    found, runs = advise(OLD, NEW, NEW, versions=("1.0", "1.1", "1.2"), forget=True)
    assert found.findings[0].since == f"since run {tell(runs[1], 2)} at least"


def test_where_predictions_are_not_known_nothing_is_dated(advise):
    found, _ = advise(None, None, None, versions=("1.0", "1.1", "1.2"), worse=0.5)
    assert found.passed
    found, _ = advise(None, None, NEW, versions=("1.0", "1.1", "1.2"))
    assert found.findings[0].since == ""


def test_another_version_is_bisected_between_the_two(advise, capsys):
    found, runs = advise(OLD, NEW, versions=("1.0", "1.1"))
    bisect, accept = found.next
    assert bisect == (
        "boosters-eval bisect --library boosters --dataset diabetes --metric rmse --versions 1.0..1.1"
        " --param n_estimators=5 max_depth=3"
    )
    assert accept == (
        f"if it is intended: boosters-eval baseline update b.json --run {runs[-1].run_id}"
        " --library boosters --accept 'WHY'"
    )
    run_cli([*shlex.split(bisect)[1:], "--dry-run"])
    told = capsys.readouterr().err
    assert "boosters" in told
    assert "No such option" not in told
    assert "must be" not in told


def test_the_same_version_is_bisected_between_the_commits(advise, commits):
    found, _ = advise(OLD, NEW, facts=[{"git_sha": sha} for sha in commits])
    assert found.next[0] == (
        "boosters-eval bisect --library boosters --dataset diabetes --metric rmse --folder ."
        f" --commits {commits[0]}..{commits[1]} --param n_estimators=5 max_depth=3"
    )


@pytest.mark.parametrize("project", ["name = 'my_checks'", "[", ""])
def test_commits_of_what_only_uses_the_library_are_not_bisected(advise, commits, tmp_path, project):
    (tmp_path / "sources" / "pyproject.toml").write_text(f"[project]\n{project}\n")
    found, _ = advise(OLD, NEW, facts=[{"git_sha": sha} for sha in commits])
    assert [command.partition(":")[0] for command in found.next] == ["if it is intended"]


def test_commits_that_are_not_there_are_not_bisected(advise, commits):
    found, _ = advise(OLD, NEW, facts=[{"git_sha": sha} for sha in ("c0ffee1", commits[1])])
    assert [command.partition(":")[0] for command in found.next] == ["if it is intended"]


def test_another_build_of_the_same_version_is_bisected_in_its_sources(advise):
    builds = [{"targets": {"boosters": {"version": "1.0", "digest": 16 * one}}} for one in "ab"]
    found, _ = advise(OLD, NEW, facts=builds)
    assert found.next[0] == (
        "with the sources of boosters: boosters-eval bisect --library boosters --dataset diabetes --metric rmse"
        " --folder SOURCES --commits GOOD..BAD --param n_estimators=5 max_depth=3"
    )


@pytest.mark.parametrize("commit", [None, "c0ffee"])
def test_where_nothing_lies_between_there_is_nothing_to_bisect(advise, commit):
    found, _ = advise(OLD, NEW, facts=2 * [{"git_sha": commit}])
    assert [command.partition(":")[0] for command in found.next] == ["if it is intended"]


def test_each_library_is_bisected_once(advise):
    both = ("boosters", "xgboost")
    found, _ = advise(OLD, NEW, libraries=both, versions=("1.0", "1.1"), rules=CheckRules(under_test=both))
    assert [f.status for f in found.findings] == [Status.REGRESSION] * 2
    assert [command.split()[3] for command in found.next[:2]] == ["boosters", "xgboost"]
    assert found.next[2].endswith(" --library boosters --library xgboost --accept 'WHY'")


def test_what_has_no_file_cannot_be_updated(advise):
    found, _ = advise(OLD, NEW, name=UNNAMED, versions=("1.0", "1.1"))
    assert [command.split()[1] for command in found.next] == ["bisect"]


def test_drift_is_dated_and_bisected_but_needs_no_acceptance(advise):
    versions = ("1.0", "1.1")
    rules = CheckRules(statistical=True, under_test=("boosters",))
    found, _ = advise(OLD, NEW, worse=0.505, rules=rules, versions=versions)
    assert found.findings[0].status is Status.DRIFT
    assert found.findings[0].since.startswith("new in this run")
    assert [command.split()[1] for command in found.next] == ["bisect"]


def test_what_did_not_get_worse_needs_no_advice(advise):
    found, _ = advise(OLD, OLD)
    assert found.next == ()
    assert found.findings[0].since == ""
