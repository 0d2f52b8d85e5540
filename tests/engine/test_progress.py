"""What people see of a run: counts that never exceed their total, and estimates that are about work alone."""

import io
import re
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from boosters_eval.engine import observer, session
from boosters_eval.engine.cell import Failure
from boosters_eval.engine.observer import (
    CellEnded,
    Expectation,
    PhaseStarted,
    PlainLines,
    ProgressBar,
    RunEnded,
    RunStarted,
    make_progress,
)
from boosters_eval.engine.settings import RunSettings

PLAN = SimpleNamespace(run_id="0123456789abcdef", refs=(SimpleNamespace(target="a"),))


class Cell(str):
    __slots__ = ()
    target = SimpleNamespace(name="a")

    @property
    def key(self):
        return str(self)


class Story:
    """A run in which every cell takes `seconds`, one after another, told to a real observer by a fake clock."""

    def __init__(self, make):
        self.now = 1000.0
        self.count = 0
        self.plan = PLAN
        self.observer = make(self.clock)

    def clock(self):
        return self.now

    def look(self, todo, kept=0, *, imports=0.0, seconds=1.0, failing=False):
        self.observer.begin(RunStarted(self.plan, todo, kept))
        self.now += imports
        for _ in range(todo):
            self.count += 1
            cell = Cell(f"cell {self.count}")
            self.observer.phase(PhaseStarted(cell, "start"))
            self.now += seconds
            self.observer.outcome(CellEnded(cell, _failure() if failing else SimpleNamespace(summary=lambda: "done")))
            yield
        self.observer.end(RunEnded(None))


def _failure():
    return Failure(spec="s", target="t", seed=1, error_type="Crash", error_message="")


@pytest.fixture
def lines():
    stream = io.StringIO()
    story = Story(lambda clock: PlainLines(stream, every=0.0, clock=clock))
    story.said = lambda: re.findall(r"(\d+)/(\d+) done, (\d+) failed, about (.+) left", stream.getvalue())
    return story


def tell(*looks):
    for look in looks:
        for _ in look:
            pass


def test_imports_are_no_work(lines):
    tell(lines.look(3, imports=100.0, seconds=2.0))
    assert [left for *_, left in lines.said()] == ["4 s", "2 s", "0 s"]


def test_totals_grow_with_the_looks_and_nothing_is_counted_beyond_them(lines):
    tell(lines.look(4, imports=10.0), lines.look(4, kept=4), lines.look(8, kept=8))
    said = lines.said()
    assert [(int(done), int(total)) for done, total, *_ in said] == [
        *((n, 4) for n in range(1, 5)),
        *((n, 8) for n in range(5, 9)),
        *((n, 16) for n in range(9, 17)),
    ]
    assert not any(left.startswith("-") for *_, left in said)


def test_cells_that_failed_are_counted_once_when_the_next_look_runs_them_again(lines):
    tell(lines.look(1, failing=True), lines.look(4, kept=0), lines.look(1, kept=4, failing=True), lines.look(3, kept=4))
    assert [(int(done), int(total), int(failed)) for done, total, failed, _ in lines.said()] == [
        (1, 1, 1),
        *((n, 4, 0) for n in range(1, 5)),
        (5, 5, 1),
        *((n, 7, 0) for n in range(5, 8)),
    ]


@pytest.mark.parametrize(("widgets", "kind"), [(None, PlainLines), (object(), ProgressBar)])
def test_notebook_gets_lines_where_no_bar_could_be_shown(monkeypatch, widgets, kind):
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(observer, "find_spec", {"ipywidgets": widgets}.get)
    assert isinstance(make_progress(io.StringIO()), kind)


@pytest.mark.parametrize(("shell", "expected"), [(None, False), (SimpleNamespace(kernel=object()), True)])
def test_python_shows_progress_in_a_notebook_alone(monkeypatch, capsys, shell, expected):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(observer, "find_spec", lambda name: None)
    with session._watching(RunSettings(), 1) as watching:
        watching.begin(RunStarted(SimpleNamespace(run_id="0", refs=(), cells=()), 1, 0))
    assert ("1 cell to do" in capsys.readouterr().err) is expected


def test_another_run_of_the_same_observer_is_counted_anew(lines):
    tell(lines.look(4, failing=True), lines.look(2))
    assert lines.said()[-1] == ("2", "2", "0", "0 s")


def test_the_next_step_of_a_bisection_is_counted_anew_although_it_keeps_what_the_one_before_ran(lines):
    tell(lines.look(4))
    lines.plan = SimpleNamespace(run_id=PLAN.run_id, refs=(*PLAN.refs, SimpleNamespace(target="b")))
    tell(lines.look(2, kept=4), lines.look(3, kept=6))
    assert [(done, total) for done, total, *_ in lines.said()[4:]] == [
        *(("1", "2"), ("2", "2")),
        *(("3", "5"), ("4", "5"), ("5", "5")),  # of which only a further look goes on
    ]


def test_a_resumed_run_counts_what_it_runs(lines):
    tell(lines.look(2, kept=7))
    assert [(done, total) for done, total, *_ in lines.said()] == [("1", "2"), ("2", "2")]


def test_an_executor_that_says_more_than_was_announced_never_passes_the_total(lines):
    observer = lines.observer
    observer.begin(RunStarted(PLAN, 1, 0))
    for n in range(3):
        observer.outcome(CellEnded(Cell(f"c{n}"), SimpleNamespace(summary=lambda: "done")))
    assert [(done, total) for done, total, *_ in lines.said()] == [("1", "1"), ("2", "2"), ("3", "3")]


def test_cells_that_never_began_give_no_estimate():
    stream = io.StringIO()
    observer = PlainLines(stream, every=0.0, clock=lambda: 0.0)
    observer.begin(RunStarted(PLAN, 2, 0))
    observer.outcome(CellEnded(Cell("c"), _failure()))
    assert stream.getvalue().endswith("1/2 done, 1 failed\n")


def test_cells_side_by_side_share_the_time_that_is_left(lines):
    observer = lines.observer
    observer.begin(RunStarted(PLAN, 6, 0))
    for n in range(2):
        observer.phase(PhaseStarted(Cell(f"c{n}"), "start"))
    lines.now += 10.0
    for n in range(2):
        observer.outcome(CellEnded(Cell(f"c{n}"), SimpleNamespace(summary=lambda: "done")))
    assert lines.said()[-1] == ("2", "6", "0", "20 s")


def test_long_waits_are_told_in_minutes_and_hours(lines):
    tell(lines.look(3, seconds=4000.0))
    assert [left for *_, left in lines.said()] == ["2 h 13 min", "67 min", "0 s"]


def test_bar_counts_and_estimates_as_the_lines_do(monkeypatch):
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=io.StringIO(), force_terminal=True, width=120))
    story = Story(lambda clock: ProgressBar(clock=clock))
    seen = []
    for look in (story.look(2, imports=50.0, seconds=3.0), story.look(2, kept=2, seconds=3.0)):
        for _ in look:
            task = story.observer._bar.tasks[0]
            seen.append((task.completed, task.total, task.fields["left"]))
    assert seen == [(1, 2, "left 3 s"), (2, 2, "left 0 s"), (3, 4, "left 3 s"), (4, 4, "left 0 s")]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_bar_never_cuts_a_number_or_a_name(monkeypatch, width):
    shown = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width)
    monkeypatch.setattr("rich.console.Console", lambda **_: shown)
    observer = ProgressBar(clock=lambda: 0.0)
    observer.begin(RunStarted(PLAN, 1215, 0))
    name = "a_data_set_of_a_user/gbdt lightgbm seed 2716"
    observer.phase(PhaseStarted(Cell(name), "predict"))
    observer.outcome(CellEnded(Cell("c"), _failure()))
    observer.end(RunEnded(None))
    shown.file = io.StringIO()
    shown.print(observer._bar.get_renderable())
    text = shown.file.getvalue()
    assert "…" not in text
    assert "1/1215 1 failed 0:00:00" in " ".join(text.split())
    written = iter("".join(text.split()))
    assert all(char in written for char in "".join(f"{name}, predict".split()))


def expecting(seconds, *, jobs=1, cells=4):
    """Lines of a run whose cells should take so long."""
    stream = io.StringIO()
    keys = [f"cell {number}" for number in range(1, cells + 1)]
    plan = SimpleNamespace(run_id="0123456789abcdef", cells=keys, refs=())
    known = Expectation(lambda _: dict(zip(keys, seconds, strict=False)), jobs)
    story = Story(lambda clock: PlainLines(stream, every=0.0, clock=clock, expected=known))
    story.plan, story.text = plan, stream.getvalue
    return story


def test_what_cells_should_take_is_said_before_any_has_ended():
    story = expecting([10.0, 10.0, 40.0, 40.0], jobs=2)
    next(story.look(4, seconds=10.0))
    assert story.text().splitlines()[0] == "run 0123456789abcdef: 4 cells to do, about 50 s"


def test_cells_that_should_take_longer_count_for_more():
    story = expecting([10.0, 10.0, 40.0, 40.0])
    look = story.look(4, seconds=10.0)
    next(look), next(look)
    assert story.text().splitlines()[2] == "2/4 done, 0 failed, about 80 s left"  # not 20 s, as the pace so far has it


def test_a_machine_that_is_slower_than_expected_corrects_the_estimate():
    story = expecting([1.0] * 4)
    tell(story.look(4, seconds=10.0))
    left = [int(found) for found in re.findall(r"about (\d+) s left", story.text())]
    assert left[0] > 3 * 4
    assert left == sorted(left, reverse=True)


def test_without_a_history_there_is_no_estimate_at_the_start():
    story = expecting([])
    next(story.look(4))
    assert story.text().splitlines()[0] == "run 0123456789abcdef: 4 cells to do"
