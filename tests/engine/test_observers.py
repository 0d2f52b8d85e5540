"""Whoever watches hears typed events, and the end with its results."""

import re
from typing import ClassVar

import pytest

from boosters_eval import (
    OBSERVERS,
    BoostersEvalWarning,
    ConfigError,
    Failure,
    Observer,
    Observers,
    TrainingConfig,
    compare,
)
from boosters_eval.engine.observer import (
    CellEnded,
    ObserverSettings,
    PhaseStarted,
    PlainLines,
    ProgressBar,
    RunEnded,
    RunStarted,
    watch,
)
from tiny import FEW, run_tiny, shared_pool, tiny_config


class Recorder(Observer):
    def __init__(self):
        self.events = []

    def begin(self, event):
        self.events.append(event)

    def phase(self, event):
        self.events.append(event)

    def outcome(self, event):
        self.events.append(event)

    def end(self, event):
        self.events.append(event)


def kinds(recorder):
    return [type(event) for event in recorder.events]


def test_events_come_in_order_and_the_end_has_the_run(faulty):
    seen = Recorder()
    results = run_tiny(tiny_config("none"), tiny_config("segfault"), observer=seen, jobs=1)
    started, *middle, ended = seen.events
    assert isinstance(started, RunStarted)
    assert (started.todo, started.kept) == (2, 0)
    assert isinstance(ended, RunEnded)
    assert [o.key for o in ended.run.results] == [r.key for r in results.results]
    assert [f.signal for f in ended.run.failures] == ["SIGSEGV"]
    assert {type(event) for event in middle} == {PhaseStarted, CellEnded}
    phases = [
        event.phase for event in middle if isinstance(event, PhaseStarted) and event.cell.spec.name == "tiny/none"
    ]
    assert phases == ["start", "load", "warm-up", "build", "fit", "predict", "score", "done"]
    assert sum(isinstance(event.outcome, Failure) for event in middle if isinstance(event, CellEnded)) == 1


def test_interrupted_run_ends_without_results(faulty):
    class Impatient(Recorder):
        def outcome(self, event):
            raise KeyboardInterrupt

    seen = Impatient()
    with pytest.raises(KeyboardInterrupt):
        run_tiny(tiny_config("none"), seeds=3, observer=seen)
    assert seen.events[-1] == RunEnded(None)


def test_several_watch_at_once_by_name_or_as_objects(faulty):
    made = []

    class Named(Recorder):
        def __init__(self):
            super().__init__()
            made.append(self)

    OBSERVERS.register("named", Named)
    try:
        own = Recorder()
        none = TrainingConfig(max_depth=faulty.BY_NAME["none"])
        compare("diabetes", "faulty", seeds=1, training=none, observer=["named", own], executor=shared_pool())
    finally:
        OBSERVERS.unregister("named")
    assert kinds(own) == kinds(made[0])
    assert kinds(own)[-1] is RunEnded


def test_unknown_observer_is_one_sentence(home):
    with pytest.raises(ConfigError, match=r"Unknown observer 'bars'. Did you mean 'bar'\? Known: bar, history, lines"):
        compare("iris", "sklearn", seeds=1, training=FEW, observer="bars")


def test_a_bar_tells_the_first_failure_of_a_kind_and_logs_tell_all(faulty, capsys):
    run_tiny(tiny_config("segfault"), seeds=3, observer=ProgressBar(), jobs=1)
    assert capsys.readouterr().err.count("failed: ") == 1
    run_tiny(tiny_config("segfault"), seeds=3, observer=PlainLines(), jobs=1)
    assert capsys.readouterr().err.count("failed: ") == 3


def test_observer_that_fails_receives_no_further_events_and_costs_nothing(faulty):
    class Broken(Recorder):
        def phase(self, event):
            raise RuntimeError("no network")

    broken, other = Broken(), Recorder()
    with pytest.warns(
        BoostersEvalWarning,
        match=r"The observer Broken failed and receives no further events: RuntimeError\('no network'\)",
    ):
        results = run_tiny(tiny_config("none"), observer=Observers(broken, other))
    assert len(results.results) == 1
    assert kinds(broken) == [RunStarted]
    assert kinds(other)[-1] is RunEnded


@pytest.mark.parametrize("watcher", [ProgressBar, PlainLines])
def test_each_cell_is_told_with_its_outcome_and_phases_on_request(faulty, capsys, watcher):
    run_tiny(tiny_config("none"), tiny_config("segfault"), observer=watcher(each=True), jobs=1)
    said = capsys.readouterr().err
    assert re.search(
        r"tiny/none faulty seed 42: rmse [\d.]+, model seed \d+, trained in [\d.]+ s \(load [\d.]+ s, warm-up .*score",
        said,
    )
    assert re.search(r"tiny/segfault faulty seed 42: failed \(load [\d.]+ s, warm-up", said)
    run_tiny(tiny_config("none"), observer=watcher(), jobs=1)
    assert "trained in" not in capsys.readouterr().err


class Closing(Observer):
    """Notes what it was created with, and how it was closed."""

    made: ClassVar = []

    def __init__(self, settings=None):
        self.settings, self.closed = settings, []
        self.made.append(self)

    @classmethod
    def for_run(cls, settings):
        return cls(settings)

    def close(self, *, interrupted=False):
        self.closed.append(interrupted)


@pytest.fixture
def closing(monkeypatch):
    monkeypatch.setattr(Closing, "made", [])
    OBSERVERS.register("closing", Closing)
    yield
    OBSERVERS.unregister("closing")


def test_named_observer_is_created_with_the_settings_and_closed_but_any_other_is_left_open(closing, tmp_path):
    own, settings = Closing(), ObserverSettings(home=tmp_path)
    with watch([own, "closing"], settings):
        _, created = Closing.made
        assert (created.settings, created.closed) == (settings, [])
    assert (own.closed, created.closed) == ([], [False])
    with pytest.raises(KeyboardInterrupt), watch(["closing"]):
        raise KeyboardInterrupt
    assert (Closing.made[-1].closed, Closing.made[-1].settings) == ([True], ObserverSettings())


def test_observer_that_fails_or_cannot_be_closed_costs_nothing_and_the_others_are_closed(closing, monkeypatch):
    class Stuck(Closing):
        def begin(self, event):
            raise RuntimeError("no network")

        def close(self, *, interrupted=False):
            raise OSError("stuck")

    OBSERVERS.register("stuck", Stuck)
    try:
        with (
            pytest.warns(BoostersEvalWarning, match=r"Stuck failed and receives no"),
            pytest.warns(
                BoostersEvalWarning, match=r"The observer Stuck failed when it was closed: OSError\('stuck'\)"
            ),
            watch(["closing", "stuck"]) as observer,
        ):
            observer.begin(RunStarted(plan=None, todo=0, kept=0))
    finally:
        OBSERVERS.unregister("stuck")
    assert Closing.made[0].closed == [False]
    one, other = Closing(), Closing()
    with Observers(one, other):
        assert one.closed == []
    assert one.closed == other.closed == [False]


def test_history_watches_every_session(faulty, home):
    with watch([]) as observer:
        run_tiny(tiny_config("none"), observer=observer)
    assert (home / "history.sqlite").exists()
