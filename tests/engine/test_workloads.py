"""A workload of a third party, whose targets are no Python libraries, gets all that the engine has to give."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import pytest

from boosters_eval import (
    WORKLOADS,
    ConfigError,
    Failure,
    Limits,
    LocalPool,
    Observer,
    RunError,
    Work,
    execute,
    load_run,
)
from boosters_eval.engine.execute import Mode
from boosters_eval.engine.observer import PlainLines
from boosters_eval.engine.runs import find_run, verify
from boosters_eval.reports.tables import Column, Report, ReportTable, Row, TableCell
from boosters_eval.reports.terminal import print_document
from shells import SHELLS, plan_of, run, run_afresh

DOUBLE = "echo $((SEED * 2))"


def test_its_entry_point_makes_it_known():
    plugins = str(Path(__file__).parents[1] / "plugins")
    code = "from boosters_eval import WORKLOADS; print(sorted(WORKLOADS), WORKLOADS['shell'].name)"
    env = {**os.environ, "PYTHONPATH": plugins}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    names = ["binding", "determinism", "evaluate", "export", "fit", "importances", "reload", "shell", "upgrade"]
    assert done.stdout == f"{names} shell\n"


def test_cells_run_are_recorded_and_verified(shell):
    done = run(plan_of(shell, {"double": DOUBLE}))
    assert [(o.target, o.seed, o.value) for o in done.results] == [
        ("sh", 1, 2.0), ("sh", 2, 4.0), ("bash", 1, 2.0), ("bash", 2, 4.0),
    ]  # fmt: skip
    folder = find_run("last")
    assert list(verify(folder)) == [("journal.jsonl", "")]
    assert folder.load().outcomes == done.outcomes
    assert '"of":"shell"' in folder.journal_path(1).read_text()


def test_each_failure_costs_its_own_cell(shell):
    scripts = {
        "crash": "kill -SEGV $$",
        "exit": "echo bad luck >&2; exit 3",
        "hang": "sleep 60",
        "fine": DOUBLE,
        "nonsense": "echo many",
    }
    done = run(plan_of(shell, scripts, seeds=(1,)), limits=Limits(timeout_s=6.0))
    found = {f.spec: (f.error_type, f.phase) for f in done.failures}
    assert found == {
        "crash": ("ShellError", "answer"),
        "exit": ("ShellError", "answer"),
        "hang": ("Timeout", "answer"),
        "nonsense": ("ValueError", "answer"),
    }
    assert [o.spec for o in done.results] == ["fine", "fine"]
    assert "bad luck" in next(f.error_message for f in done.failures if f.spec == "exit")


def test_timeout_ends_the_program_that_the_cell_started(shell, tmp_path):
    script = f"echo $$ > {tmp_path}/pid; exec sleep 60"
    done = run(plan_of(shell, {"hang": script}, seeds=(1,), targets=("sh",)), limits=Limits(timeout_s=4.0))
    assert [f.error_type for f in done.failures] == ["Timeout"]
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def test_memory_limit_holds_for_the_program_that_the_cell_started(shell):
    grow = "awk 'BEGIN { s = \"xxxxxxxx\"; while (1) s = s s }'"
    done = run(plan_of(shell, {"grow": grow}, seeds=(1,), targets=("sh",)), limits=Limits(memory_mb=200))
    assert [f.error_type for f in done.failures] == ["MemoryLimit"]
    assert "200 MB" in done.failures[0].error_message


def test_memory_limit_is_named_also_when_only_the_stderr_of_the_program_tells(shell, tmp_path, monkeypatch):
    quiet = variant(
        shell, tmp_path, monkeypatch, "quiet", ("capture_output=True", "stdout=subprocess.PIPE"),
        (": {done.stderr.strip()}", ""),
    )  # fmt: skip
    grow = "awk 'BEGIN { s = \"xxxxxxxx\"; while (1) s = s s }'"
    done = run(plan_of(quiet, {"grow": grow}, seeds=(1,), targets=("sh",)), limits=Limits(memory_mb=200))
    assert [f.error_type for f in done.failures] == ["MemoryLimit"]
    assert "out of memory" in done.failures[0].stderr_tail


class Interruption(Observer):
    def __init__(self, after):
        self.left = after

    def outcome(self, event):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_interrupted_run_goes_on_where_it_was_and_ends_the_same(shell, tmp_path):
    plan = plan_of(shell, {"double": DOUBLE, "exit": "exit 3"}, seeds=range(4))
    whole = run(plan, home=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(plan, jobs=1, observer=Interruption(5))
    assert len(find_run("last").load().outcomes) == 5
    resumed = run(plan, mode=Mode.RESUME)
    assert resumed.missing == 0
    assert {key: comparable(o) for key, o in resumed.outcomes.items()} == {
        key: comparable(o) for key, o in whole.outcomes.items()
    }
    assert find_run("last").attempts() == [1]


def comparable(outcome):
    return outcome.model_dump(exclude={"threads", "traceback"})


def test_its_run_is_not_taken_for_benchmark_results(shell):
    plan = plan_of(shell, {"double": DOUBLE, "exit": "exit 3"}, seeds=(1,))
    run(plan)
    with pytest.raises(RunError, match="has no benchmark results: it is a shell run, which has reports of its own"):
        load_run(plan.run_id)
    with pytest.raises(ConfigError, match=r"There is no benchmark run in .*, only others"):
        load_run("last")


def test_progress_names_its_cells(shell):
    lines = io.StringIO()
    run(plan_of(shell, {"double": DOUBLE, "exit": "exit 3"}, seeds=(1,)), observer=PlainLines(lines, each=True))
    assert "4 cells to do" in lines.getvalue()
    assert "failed: exit sh seed 1 in answer: ShellError: sh ended with 3" in lines.getvalue()
    assert "4/4 done, 2 failed" in lines.getvalue()


def test_it_gets_a_table_in_every_rendering(shell):
    done = run(plan_of(shell, {"double": DOUBLE, "exit": "exit 3"}, seeds=(1,)))

    def cell(spec, target):
        outcome = done.outcomes[f"{spec}|{target}|1"]
        if isinstance(outcome, Failure):
            return TableCell(mean=None, std=None, n=0, text="", status="error")
        return TableCell(mean=outcome.value, std=None, n=1, text=f"{outcome.value:g}")

    rows = tuple(Row(names=(target,), cells=(cell("double", target), cell("exit", target))) for target in SHELLS)
    columns = (Column("double", "Double", None), Column("exit", "Exit", None))
    report = Report((ReportTable(name="shells", row_names=("Shell",), columns=columns, rows=rows),))
    for text in (report.to_markdown(), report.to_csv(), report._repr_html_()):
        assert "bash" in text
        assert "error" in text
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100)
    print_document(report.document(), console)
    assert "Shell" in console.file.getvalue()
    assert "error" in console.file.getvalue()


def test_spec_that_must_run_alone_has_the_machine_to_itself(shell, tmp_path):
    mark = f"test ! -e {tmp_path}/busy || echo together >> {tmp_path}/log"
    script = f"{mark}; touch {tmp_path}/busy; sleep 0.05; rm {tmp_path}/busy; echo 1"
    done = run(plan_of(shell, {"alone": script}, seeds=range(3), alone=True), jobs=4)
    assert len(done.results) == 6
    assert not (tmp_path / "log").exists()


def test_spawned_processes_do_the_same_work(shell, monkeypatch):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", "spawn")
    done = run(plan_of(shell, {"double": DOUBLE}, seeds=(3,)))
    assert [o.value for o in done.results] == [6.0, 6.0]


def test_pool_stays_for_the_next_run_and_is_closed_by_its_maker(shell):
    with LocalPool(2) as pool:
        first = execute(plan_of(shell, {"double": DOUBLE}, seeds=(1,)), pool)
        lanes = {process.number for process in pool._lanes}
        second = execute(plan_of(shell, {"double": DOUBLE}, seeds=(2,)), pool)
        assert {process.number for process in pool._lanes} == lanes
        ancestor = next(iter(pool._lanes._ancestors.values())).process
    assert (len(first.results), len(second.results)) == (2, 2)
    assert ancestor.returncode is not None


def test_pool_does_not_run_a_workload_that_was_replaced(shell, tmp_path, monkeypatch):
    with LocalPool(1) as pool:
        first = execute(plan_of(shell, {"x": DOUBLE}, seeds=(1,), targets=("sh",)), pool)
        other = variant(shell, tmp_path, monkeypatch, "replaced_shell", (ANSWER, "value=-1)"))
        second = execute(plan_of(other, {"y": DOUBLE}, seeds=(1,), targets=("sh",)), pool)
    assert [first.results[0].value, second.results[0].value] == [2.0, -1.0]


class Killer(Observer):
    """Ends a process above the first cell, as the system may when memory is short: so often, or always."""

    def __init__(self, pool, victim, times, code=signal.SIGKILL):
        self.pool, self.victim, self.left, self.code = pool, victim, times, code

    def phase(self, event):
        if event.cell.repeat.seed == 1 and event.phase == "answer" and self.left:
            self.left -= 1
            ancestor = next(iter(self.pool._lanes._ancestors.values())).process.pid
            os.kill(ancestor if self.victim == "ancestor" else max(children(ancestor)), self.code)  # the newest lane


def run_with_killer(shell, victim, times, **how):
    with LocalPool(1) as pool:
        plan = plan_of(shell, {"slow": "sleep 1; echo 1"}, seeds=(1, 2), targets=("sh",))
        return execute(plan, pool, observer=Killer(pool, victim, times, **how))


@pytest.mark.parametrize("victim", ["lane", "ancestor"])
def test_cells_of_a_killed_lane_or_ancestor_run_again_and_are_not_flaky(shell, victim):
    done = run_with_killer(shell, victim, 1)
    assert not done.failures
    assert [(o.seed, o.killed_before, o.failed_before) for o in done.results] == [(1, 1, 0), (2, 0, 0)]


@pytest.mark.parametrize("victim", ["lane", "ancestor"])
def test_what_is_killed_twice_is_a_failure_with_the_reason_and_the_next_cell_runs(shell, victim):
    done = run_with_killer(shell, victim, 5)
    (failure,) = done.failures
    assert (failure.error_type, failure.seed, failure.killed_before) == ("WorkerDied", 1, 2)
    assert "SIGKILL; it was tried twice" in failure.error_message
    assert [o.seed for o in done.results] == [2]


def test_lane_that_crashes_is_not_tried_again(shell):
    done = run_with_killer(shell, "lane", 1, code=signal.SIGSEGV)
    assert [(f.error_type, f.seed, f.killed_before) for f in done.failures] == [("WorkerDied", 1, 0)]


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def variant(module, folder, monkeypatch, name, *changes):
    """The plug-in with other code, as a module of its own."""
    source = Path(module.__file__).read_text()
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    (folder / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    made = import_module(name)
    WORKLOADS.register("shell", made.Shell, replace=True)
    return made


ANSWER = "value=float(done.stdout))"


def test_outcome_of_another_cell_is_a_failure(shell, tmp_path, monkeypatch):
    liar = variant(shell, tmp_path, monkeypatch, "liar", (ANSWER, "value=0).model_copy(update={'spec': 'other'})"))
    done = run(plan_of(liar, {"lie": DOUBLE}, seeds=(1,), targets=("sh",)))
    assert [f.error_type for f in done.failures] == ["TypeError"]
    assert "must return the ShellOutcome of lie|sh|1" in done.failures[0].error_message


def test_number_that_no_file_can_hold_is_a_failure_of_its_cell(shell, tmp_path, monkeypatch):
    nan = variant(
        shell, tmp_path, monkeypatch, "nan", (ANSWER, "value=float('nan') if cell.repeat.seed == 1 else 1.0)")
    )
    done = run(plan_of(nan, {"x": DOUBLE}, seeds=(1, 2), targets=("sh",)))
    assert [(f.error_type, f.seed) for f in done.failures] == [("ValidationError", 1)]
    assert [o.seed for o in done.results] == [2]


GARBAGE = """phase("a\\nresult b")
        for number in os.listdir("/proc/self/fd") if cell.repeat.seed == 1 else ():
            with contextlib.suppress(OSError):
                os.write(int(number), b"result nonsense\\n")"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_garbage_on_every_descriptor_costs_the_cell_that_wrote_it(shell, tmp_path, monkeypatch, method):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
    changes = [('phase("answer")', GARBAGE), ("import os\n", "import contextlib\nimport os\n")]
    noisy = variant(shell, tmp_path, monkeypatch, f"noisy_{method}", *changes)
    done = run_afresh(plan_of(noisy, {"x": DOUBLE}, seeds=(1, 2), targets=("sh",)))
    assert [(f.error_type, f.seed) for f in done.failures] == [("InvalidAnswer", 1)]
    assert [o.seed for o in done.results] == [2]


def test_large_specs_and_large_outcomes_at_once_do_not_block_each_other(shell, tmp_path, monkeypatch):
    big = variant(
        shell,
        tmp_path,
        monkeypatch,
        "big",
        ("    threads: int", '    ballast: str = "x" * 1_500_000\n    threads: int'),
    )
    script = f"echo 1 # {'y' * 600_000}"
    plan = plan_of(big, {"x": "echo 1", "y": "echo 2"}, seeds=range(6), targets=("sh",), name_suffix=script)
    done = run_afresh(plan, jobs=4)
    assert len(done.results) == 12


def test_pool_that_is_busy_refuses_a_second_run(shell):
    with LocalPool(1) as pool:
        plan = plan_of(shell, {"x": DOUBLE}, seeds=(1, 2), targets=("sh",))
        works = [Work(cell) for cell in plan.cells]
        first = pool.run(works, lambda cell, phase: None)
        next(first)
        with pytest.raises(RunError, match="running something already"):
            next(pool.run(works, lambda cell, phase: None))
        assert len(list(first)) == 1


def test_pool_is_free_again_after_a_workload_that_cannot_name_its_imports(shell, monkeypatch):
    def imports(target):
        raise RuntimeError("unknown")

    with LocalPool(1) as pool:
        with monkeypatch.context() as patched:
            patched.setattr(shell.Shell, "imports", imports)
            with pytest.raises(RuntimeError, match="unknown"):
                execute(plan_of(shell, {"x": DOUBLE}, seeds=(1,)), pool)
        assert len(execute(plan_of(shell, {"x": DOUBLE}, seeds=(1,)), pool).results) == 2


@pytest.mark.parametrize("jobs", [0, -1, "2", None])
def test_pool_without_jobs_is_refused(jobs):
    with pytest.raises(ConfigError, match="'jobs' parameter of an executor"):
        LocalPool(jobs)


def test_ancestor_that_died_between_two_runs_costs_nothing(shell):
    with LocalPool(2) as pool:
        execute(plan_of(shell, {"x": DOUBLE}, seeds=(1,)), pool)
        ancestor = next(iter(pool._lanes._ancestors.values())).process
        ancestor.kill()
        ancestor.wait()
        done = execute(plan_of(shell, {"x": DOUBLE}, seeds=(2,)), pool)
    assert (len(done.results), done.failures) == (2, [])


def test_pool_outlives_the_thread_that_first_used_it(shell):
    with LocalPool(1) as pool:
        thread = threading.Thread(target=execute, args=(plan_of(shell, {"x": DOUBLE}, seeds=(1,)), pool))
        thread.start()
        thread.join()
        time.sleep(0.2)
        done = execute(plan_of(shell, {"x": DOUBLE}, seeds=(2,)), pool)
    assert done.failures == []


def test_import_that_fails_says_why_in_both_start_methods(shell, tmp_path, monkeypatch):
    load = "    @classmethod\n    def load(cls, lane, address):\n        raise ImportError('caf\\udce9 is closed')\n\n"
    for method in ("fork", "spawn"):
        monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
        closed = variant(
            shell,
            tmp_path,
            monkeypatch,
            f"closed_{method}",
            ("    @classmethod\n    def run", f"{load}    @classmethod\n    def run"),
        )
        done = run(plan_of(closed, {"x": DOUBLE}, seeds=(1,), targets=("sh",)))
        (failure,) = done.failures
        assert (failure.error_type, failure.error_message) == (
            "ImportError",
            "sh could not be imported: caf? is closed",
        )
