"""Bisections by real runs of a library as small as can be: its versions are folders, wheels or commits."""

import os
import re
import subprocess
import sys

import pytest

import boosters_eval as be
import toys
from boosters_eval import BenchmarkResult, ConfigError, Failure, RunError
from boosters_eval.core.errors import BuildError
from boosters_eval.core.machine import Disturbance
from boosters_eval.core.temporary import clear_abandoned, own_folder
from boosters_eval.core.terms import listen, speaking_of
from boosters_eval.engine.cell import Installation
from boosters_eval.engine.runs import find_run
from boosters_eval.programs.benchmark.spec import identity_of
from boosters_eval.programs.bisect.request import BisectRequest
from boosters_eval.programs.bisect.search import make_bisector
from boosters_eval.programs.bisect.versions import Candidate, list_candidates
from boosters_eval.runners import RUNNERS
from boosters_eval.runners.builds.install import PipResult, list_versions
from boosters_eval.runners.builds.reference import library_name
from boosters_eval.runners.builds.sources import build_commit, list_commits, list_wheels

BAD = 300.0  # what a bad version predicts too high


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The toy library's runner, by its file."""
    return toys.write_runner(tmp_path_factory.mktemp("toy"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    yield
    if "toy" in RUNNERS:  # another module has a toy of its own
        RUNNERS.unregister("toy")


class MadeUp(be.Executor):
    """Gives each version its own number, as score, time or memory, with a noise that depends on the split."""

    def __init__(self, numbers, noise=0.001):
        super().__init__(1)
        self.numbers, self.noise = numbers, noise

    def run(self, works, started):
        for work in works:
            cell, spec = work.cell, work.cell.spec
            started(cell, "done")
            number = self.numbers[int(cell.target.name.removeprefix("toy-"))]
            if number == "fails":
                yield Failure.of(cell, phase="fit", error_type="ValueError", error_message="no such parameter")
                continue
            value = number * (1 + self.noise * ((cell.repeat.seed * 7919 + round(1000 * number)) % 97 / 97))
            yield BenchmarkResult(
                **identity_of(spec),
                library=cell.target.name,
                seed=cell.repeat.seed,
                metrics={"rmse": value},
                primary_metric="rmse",
                train_time_s=value,
                peak_memory_mb=value,
                predictions_digest=f"{value}",
                library_version=cell.target.build.version,
                n_train=800,
                n_valid=200,
                split_digest=f"{cell.repeat}",
                data_digest=spec.data_digest,
                timing_mode=spec.timing.timed,
                cpu_taken=0.5 if self.noise == BUSY else 0.0,
            )

    def close(self):
        """Nothing was started."""


BUSY = 0.01  # the noise of a machine on which other programs run


def asked(**given):
    return BisectRequest(**{"library": "toy", "versions": ["0", "1"], "dataset": "diabetes", "max_seeds": 10, **given})


@pytest.fixture
def bisect(toy, monkeypatch):
    """Bisect versions 0, 1, ..., each given by its number; None cannot be imported, "fails" cannot be trained."""
    monkeypatch.setattr("boosters_eval.core.machine.find_disturbances", tuple)

    def candidate(number, value, code):
        def resolve():
            if value is None:
                raise BuildError("it cannot be imported")
            where = Installation(library="toy", version=f"1.{number}", digest=code, path=("/nowhere",))
            return RUNNERS[library_name(toy)].at(f"toy-{number}", where)

        return Candidate(str(number), resolve)

    def run(*numbers, noise=0.001, codes=None, **given):
        request = asked(**{"executor": MadeUp(numbers, noise), **given})
        versions = [
            candidate(number, value, codes[number] if codes else f"code {number}")
            for number, value in enumerate(numbers)
        ]
        return make_bisector(request, versions).run()

    return run


class Counting(be.Observer):
    def __init__(self):
        self.begun = []

    def begin(self, event):
        self.begun.append((event.todo, event.kept))


def test_the_version_with_which_a_score_changed_is_found_and_a_broken_one_is_skipped(bisect):
    told = []
    found = bisect(78.0, 78.0, None, 300.0, 300.0, 300.0, on_step=told.append)
    assert (found.state, found.earlier, found.later, found.exit_code) == ("found", "1", "3", 0)
    assert dict(found.unusable) == {"2": "it cannot be imported"}
    assert re.fullmatch(
        r"rmse of toy on diabetes changed from 78\.\d\d to 300\.\d \(\+285 %\) after 1 and not later than with 3:"
        r" 2 could not be used\.",
        found.answer,
    )
    assert [step.answer for step in found.steps] == ["changed", "unusable", "later", "earlier"]
    assert told == list(found.steps)


def test_the_runs_of_a_bisection_are_in_the_history(bisect, tmp_path):
    bisect(78.0, 300.0)
    assert (tmp_path / "home" / "history.sqlite").exists()


def test_a_version_that_cannot_be_trained_is_skipped_with_the_reason(bisect):
    found = bisect(78.0, "fails", 300.0)
    assert found.unusable["1"] == "toy-1 failed in phase 'fit' with ValueError: no such parameter."
    with pytest.raises(RunError, match="toy-1 failed in phase 'fit'"):
        bisect(78.0, "fails")


@pytest.mark.parametrize(("metric", "second"), [("rmse", (5, 10)), ("memory", (5, 10)), ("train_time_s", (15, 0))])
def test_what_is_known_is_not_run_again_but_times_are_taken_in_the_same_minutes(bisect, metric, second):
    counting = Counting()
    found = bisect(78.0, 79.0, 300.0, metric=metric, observer=counting)
    assert found.answer.endswith("with 2 (1 is the last before).")
    assert counting.begun == [(10, 0), second]


def test_identical_predictions_or_code_need_no_test(bisect):
    found = bisect(78.0, 78.0, 300.0)
    assert found.steps[1].reason == "predicts the same as 0"
    found = bisect(78.0, 78.0, 300.0, metric="train_time_s", codes=["a", "a", "b"])
    assert (found.steps[1].reason, found.steps[1].runs) == ("the same code as 0", ())
    assert found.answer.endswith("with 2 (1 is the last before).")


def test_nothing_changed(bisect):
    found = bisect(78.0, 300.0, 78.0)
    assert (found.state, found.exit_code, len(found.steps)) == ("unchanged", 0, 1)
    same = "rmse of toy on diabetes did not change between 0 and 2: "
    assert found.answer == f"{same}the values are identical with 5 seeds."
    assert bisect(78.0, 300.0, 78.0, codes=["a", "b", "a"]).answer == f"{same}they have the same code."
    small = bisect(78.0, 78.1).answer
    assert "did not change by more than 1.0 % between 0 and 1: +0.1" in small
    assert small.endswith("There is a smaller change: use a smaller tolerance to find it.")


def test_what_cannot_be_told_is_said(bisect):
    found = bisect(78.0, 78.78, noise=0.3)
    assert (found.state, found.exit_code) == ("undecided", 1)
    assert found.answer.startswith("It cannot be told whether rmse of toy on diabetes changed by more than 1.0 %")
    assert "Use more seeds, such as max_seeds=20, or" in found.answer
    with speaking_of({}):
        assert "Use more seeds, such as --max-seeds 20, or" in bisect(78.0, 78.78, noise=0.3).answer


def test_a_change_that_is_not_the_whole_difference_is_said_to_be_a_part(bisect):
    found = bisect(78.0, 100.0, 200.0, 300.0, 310.0)
    assert "of the difference between the ends; bisect " in found.answer
    assert found.share == pytest.approx(0.43, abs=0.02)


def test_a_number_that_fell_is_found_as_well(bisect):
    found = bisect(300.0, 299.0, 78.0, 78.2)
    assert (found.earlier, found.later) == ("1", "2")
    assert "(-73.9 %) with 2" in found.answer


@pytest.mark.parametrize(("metric", "timed", "measured"), [("memory", True, True), ("rmse", False, False)])
def test_memory_is_measured_in_timing_mode(metric, timed, measured):
    versions = [Candidate(name, lambda: "never resolved") for name in "ab"]
    request = make_bisector(asked(metric=metric), versions).request
    assert (request.timing_mode, request.measure_memory) == (timed, measured)


def test_of_a_drift_within_the_tolerance_no_version_is_named(bisect):
    found = bisect(*(78.0 * 1.004**number for number in range(5)))
    assert found.state == "undecided"
    assert int(found.later) - int(found.earlier) > 1
    assert "could not be told from either" in found.answer


def test_times_that_other_programs_disturbed_are_not_judged(bisect):
    with pytest.raises(RunError, match=r"no 'train_time_s' to compare\. 20 times were left out: other programs"):
        bisect(1.0, 2.0, metric="train_time_s", noise=BUSY)


def test_times_are_not_taken_on_a_machine_that_is_busy_from_the_beginning(bisect, monkeypatch):
    busy = Disturbance(kind="programs", text="other programs used 90 % of the 2 CPUs", remedy="wait until they end")
    monkeypatch.setattr("boosters_eval.core.machine.find_disturbances", lambda: (busy,))
    with pytest.raises(RunError, match="Times cannot be judged on this machine now: other programs used 90 %"):
        bisect(1.0, 2.0, metric="train_time_s")


def test_an_end_that_cannot_be_used_is_an_error(bisect):
    with pytest.raises(BuildError, match=r"^1, an end of the search, cannot be used: it cannot be imported"):
        bisect(78.0, None)


def test_a_bisection_that_was_interrupted_runs_only_what_is_left(bisect):
    class Stop(be.Observer):
        def begin(self, event):
            if len({ref.target for ref in event.plan.refs}) == 3:
                raise KeyboardInterrupt

    counting = Counting()
    with pytest.raises(KeyboardInterrupt):
        bisect(78.0, 79.0, 300.0, observer=Stop())
    found = bisect(78.0, 79.0, 300.0, observer=counting, resume=True)
    assert (found.earlier, found.later) == ("1", "2")
    assert sum(todo for todo, _ in counting.begun) == 5  # those of the candidate


def test_the_settings_of_every_run_are_those_of_a_bisection(bisect):
    found = bisect(78.0, 79.0, 300.0, name="mine", resume=True, timeout=60, memory_limit=4000)
    with pytest.warns(be.BoostersEvalWarning, match="mine"):  # each step has the name
        assert find_run("mine").run_id == found.steps[-1].runs[-1]


def test_whoever_listens_hears_of_the_steps_and_only_once_that_nothing_is_continued(bisect):
    told = []
    with listen(told.append):
        bisect(78.0, 79.0, 300.0, resume=True, observer="lines")
    assert [text for text in told if text.startswith("Note")] == [
        "Note: there is no earlier attempt at this plan, so everything runs."
    ]
    steps = told[1:]
    assert [line.split()[0] for line in steps] == ["Step", "1", "2"]
    assert "changed: +285 %" in steps[1]


def git(folder, *words):
    done = subprocess.run(
        ["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Commits 0 to 3: the second does not build, and the third makes it worse."""
    folder = tmp_path / "library"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for number, shift in enumerate([0.0, 0.0, BAD, BAD]):
        toys.write_source(folder, f"1.{number}", shift)
        (folder / "toybooster" / "__init__.py").write_text(f"SHIFT = {shift}\nNUMBER = {number}\n")
        if number == 1:
            (folder / "backend.py").write_text("raise SystemExit('no compiler')\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"Change number {number}")
    return folder


# What pip would do, without the second that pip takes.
BUILD = f"{sys.executable} -c 'import backend; backend.build_wheel(\"{{wheels}}\")'"


def test_the_commit_that_made_it_worse_is_found_and_the_users_files_stay(toy, repository):
    (repository / "unsaved.txt").write_text("mine")
    before = git(repository, "status", "--porcelain")
    commits = list_commits(repository, "HEAD~3..HEAD")
    found = be.bisect(
        toy, folder=repository, commits="HEAD~3..HEAD", build_command=BUILD, dataset="diabetes", max_seeds=10
    )
    assert (found.earlier, found.later) == (commits[0].short, commits[2].short)
    assert "no compiler" in found.unusable[commits[1].short]
    assert f'not later than with {found.later} "Change number 2": {commits[1].short} could not be used.' in found.answer
    assert git(repository, "status", "--porcelain") == before
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_commit_is_built_once_per_command_wherever_the_wheel_is_written(repository, tmp_path):
    counted = tmp_path / "counted"
    command = f"{BUILD.replace('{wheels}', '.')} && echo built >> {counted}"
    first = build_commit(repository, "HEAD", command)
    assert build_commit(repository, "main", command) == first
    assert first.name == "toybooster-1.3-py3-none-any.whl"
    assert counted.read_text() == "built\n"
    assert build_commit(repository, "HEAD", BUILD) != first


def test_git_forgets_what_a_killed_build_left_and_what_another_one_uses_stays(repository, tmp_path):
    """The folder itself is cleared with all that is temporary, by whichever command comes next."""
    with own_folder(tmp_path) as used:
        left = tmp_path / "boosters-eval-tmp-left"
        left.mkdir()
        for folder in (left, used):
            git(repository, "worktree", "add", "--detach", str(folder / "tree"), "HEAD~1")
        clear_abandoned(tmp_path)
        assert not left.exists()
        build_commit(repository, "HEAD", BUILD)
        known = [line.split()[0] for line in git(repository, "worktree", "list").splitlines()]
        assert known == [str(repository), str(used / "tree")]


def test_asking_for_the_wheel_of_a_commit_counts_as_a_use(repository):
    build_commit(repository, "HEAD", BUILD)
    (kept,) = list_wheels()
    os.utime(kept.folder, (0, 0))
    build_commit(repository, "HEAD", BUILD)
    assert kept.used > 0


def test_a_build_that_leaves_no_wheel_is_said(repository):
    with pytest.raises(BuildError, match="left no wheel"):
        build_commit(repository, "HEAD", "true")


@pytest.mark.parametrize(
    ("commits", "sentence"),
    [
        ("HEAD", "must be GOOD..BAD"),
        ("HEAD...HEAD~1", "must be GOOD..BAD"),
        ("nope..HEAD", "has no commit 'nope'"),
        ("HEAD..HEAD~1", "must be in order: 'HEAD' is not an ancestor of 'HEAD~1'"),
    ],
)
def test_commits_that_are_no_range_are_refused(repository, commits, sentence):
    with pytest.raises(ConfigError, match=sentence):
        list_commits(repository, commits)


def test_a_good_commit_from_a_side_branch_is_followed_only_by_those_that_contain_it(repository):
    """What is on the line before the merge lacks the good commit, so a difference there would be no change after it."""
    git(repository, "checkout", "-q", "-b", "side", "HEAD~2")
    git(repository, "commit", "-q", "--allow-empty", "-m", "On the side")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merged", "side")
    assert [commit.subject for commit in list_commits(repository, "side..main")] == ["On the side", "Merged"]


def test_what_a_shallow_clone_lacks_is_said(repository, tmp_path):
    git(repository, "tag", "good", "HEAD~2")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    with pytest.raises(ConfigError, match=r"no commit 'good', .* is shallow: 'git fetch --unshallow'"):
        list_commits(tmp_path / "shallow", "good..HEAD")


def test_only_first_parents_are_searched(repository):
    git(repository, "checkout", "-q", "-b", "side", "HEAD~1")
    git(repository, "commit", "-q", "--allow-empty", "-m", "On the side")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merged", "side")
    assert [commit.subject for commit in list_commits(repository, "HEAD~2..HEAD")] == [
        "Change number 2",
        "Change number 3",
        "Merged",
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "Use either 'versions', 'wheels' or 'folder' to say which versions to search. Got none of them"),
        ({"versions": "1..2", "folder": "."}, "Got 'versions' and 'folder'."),
        ({"versions": "1..2", "commits": "a..b"}, "'commits' parameter must come with a folder"),
        ({"versions": "4.3"}, "'versions' parameter must be A..B, such as 4.3..4.7. Got '4.3'"),
        ({"versions": "4.7..4.3"}, "with A before B"),
        ({"versions": [">=4", "5"]}, "must be exact"),
        ({"versions": ["4.3", "4.3"]}, "must differ. Got '4.3' twice"),
        ({"wheels": ["missing.whl"]}, "there is no file or folder"),
        ({"folder": "."}, "'commits' parameter must be GOOD..BAD"),
    ],
)
def test_versions_that_cannot_be_searched_are_refused_in_a_sentence(given, sentence):
    with pytest.raises(ConfigError, match=sentence):
        be.prepare_bisection("lightgbm", **given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tolerance": -1}, "'tolerance' parameter must be a share from 0 to below 1. Got -1"),
        ({"alpha": 0}, "'alpha' parameter must be a chance above 0 and below 0.5. Got 0"),
        ({"alpha": 0.9, "max_seeds": 2}, "'alpha' parameter must be a chance above 0 and below 0.5. Got 0.9"),
        ({"max_seeds": 1}, "'max_seeds' parameter must be a count from 2"),
        ({"metric": "auc"}, "does not fit the task"),
        ({"dataset": ["iris", "wine"]}, "on one data set and one booster. Got 2"),
        ({"tolerence": 1}, r"bisect\(\) has no parameter 'tolerence'. Did you mean 'tolerance'"),
        ({"versions": ["1.0"]}, "needs at least two versions. Got 1"),
    ],
)
def test_what_no_search_can_be_made_with_is_refused_before_anything_is_installed(given, sentence):
    with pytest.raises(ConfigError, match=sentence):
        be.bisect("lightgbm", **{"versions": ["1.0", "1.1"], "dataset": "diabetes", **given})


def test_releases_are_chosen_by_their_version_ends_included(monkeypatch):
    known = ["4.2.0", "4.3.0", "4.9.0", "4.10.0", "4.11.0"]
    monkeypatch.setattr("boosters_eval.programs.bisect.versions.list_versions", lambda library: known)
    found = list_candidates(asked(library="lightgbm", versions="4.3..4.10"))
    assert [candidate.name for candidate in found] == ["4.3.0", "4.9.0", "4.10.0"]
    with pytest.raises(ConfigError, match=r"at least two released versions .* pip finds 4\.2\.0 to 4\.11\.0"):
        be.prepare_bisection("lightgbm", versions="4.4..4.5")


def test_the_releases_are_those_of_all_distributions_of_a_library(monkeypatch):
    """A version is installed from whichever has it, and xgboost-cpu has none before 2.1."""
    known = {"xgboost-cpu": "3.0.0, 2.1.1", "xgboost": "3.0.0, 2.1.1, 2.1.0, 2.1.0rc1, 1.7.6"}

    def pip(*words):
        return PipResult(0, f"{words[-1]} (3.0.0)\nAvailable versions: {known[words[-1]]}\n")

    monkeypatch.setattr("boosters_eval.runners.builds.install.run_pip", pip)
    assert list_versions("xgboost") == ["1.7.6", "2.1.0", "2.1.1", "3.0.0"]
    lost = PipResult(
        1, "WARNING: Retrying (Retry(total=4)) after connection broken\nERROR: No matching distribution found"
    )
    monkeypatch.setattr(
        "boosters_eval.runners.builds.install.run_pip", lambda *words: lost if words[-1] == "xgboost" else pip(*words)
    )
    with pytest.raises(BuildError, match="pip finds no versions of xgboost"):
        list_versions("xgboost")


def test_wheels_of_one_version_are_told_apart_by_their_place(toy, tmp_path):
    paths = [toys.write_wheel(tmp_path / name, "1.0") for name in ("a", "b")]
    assert [candidate.name for candidate in list_candidates(asked(library=toy, versions=None, wheels=paths))] == [
        "1-1.0",
        "2-1.0",
    ]


class Stopped(MadeUp):
    """Is interrupted after so many cells; keeps which ones it has run."""

    def __init__(self, numbers, after=None):
        super().__init__(numbers)
        self.after, self.ran = after, []

    def run(self, works, started):
        for work, outcome in zip(works, super().run(works, started), strict=True):
            if len(self.ran) == self.after:
                raise KeyboardInterrupt
            self.ran.append((work.cell.repeat.seed, work.cell.target.name))
            yield outcome


def test_a_search_of_times_that_was_interrupted_twice_measures_the_torn_repeat_anew_and_says_the_same(bisect, tmp_path):
    numbers = (1.0, 1.0, 1.5)

    def search(after=None, home="home", **settings):
        executor = Stopped(numbers, after)
        given = {"metric": "train_time_s", "executor": executor, "home": tmp_path / home, **settings}
        try:
            return bisect(*numbers, **given), executor.ran
        except KeyboardInterrupt:
            return None, executor.ran

    whole, all_cells = search(home="other")
    _, first = search(after=3)
    _, second = search(after=2, resume=True)
    found, third = search(resume=True)
    assert found.answer == whole.answer
    assert [step.reason for step in found.steps] == [step.reason for step in whole.steps]
    assert len({seed for seed, _ in first}) == 2
    torn = [cell for cell in first if cell[0] == first[-1][0]]
    assert len(torn) == 1
    assert set(torn) < set(second), "the torn repeat is measured anew"
    assert {*first, *second, *third} == set(all_cells)
