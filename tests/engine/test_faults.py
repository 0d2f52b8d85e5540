"""Each way to die costs exactly the cell that died."""

import sys

import pytest

from tiny import run_tiny, tiny_config


def outcome_of(fault, **settings):
    """The faulty cell's error, after checking that the cell beside it is not touched."""
    results = run_tiny(tiny_config(fault), tiny_config("none"), **settings)
    assert [r.config_name for r in results.results] == ["tiny/none"], results.errors
    assert len(results.errors) == 1
    return results.errors[0]


def test_segfault_is_recorded_with_its_signal_and_phase(faulty):
    error = outcome_of("segfault")
    assert (error.error_type, error.signal, error.phase) == ("Crash", "SIGSEGV", "fit")


def test_exit_of_the_process_is_recorded_with_its_status(faulty):
    error = outcome_of("exit")
    assert error.error_type == "Exit"
    assert "exit status 3" in error.error_message
    assert error.phase == "fit"


def test_endless_loop_is_killed_at_the_timeout(faulty):
    error = outcome_of("hang", timeout=4.5)
    assert (error.error_type, error.phase) == ("Timeout", "fit")
    assert "4.5 s" in error.error_message


def test_allocation_beyond_the_limit_is_its_own_error_type(faulty):
    error = outcome_of("allocate", memory_limit=150)
    assert error.error_type == "MemoryLimit"
    assert "150 MB" in error.error_message


def test_allocation_within_the_limit_is_no_error(faulty):
    results = run_tiny(tiny_config("allocate"), memory_limit=1000)
    assert len(results.results) == 1


def test_abort_keeps_the_end_of_stderr(faulty):
    error = outcome_of("abort")
    assert error.signal == "SIGABRT"
    assert "last words" in error.stderr_tail


def test_sigkill_from_outside_is_told_from_a_crash(faulty):
    error = outcome_of("kill")
    assert (error.error_type, error.signal, error.killed_before) == ("Killed", "SIGKILL", 2)
    assert error.error_message == "killed by SIGKILL: probably the system ran out of memory; it was tried twice"


def test_signal_without_a_name_costs_one_cell_too(faulty):
    assert outcome_of("realtime").signal == "signal 40"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_timeout_that_strikes_at_once_still_ends_every_cell(faulty, monkeypatch, method):
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", method)
    results = run_tiny(tiny_config("hang"), seeds=12, jobs=4, timeout=1e-6)
    assert [error.error_type for error in results.errors] == ["Timeout"] * 12


def test_panic_that_is_no_exception_is_recorded_with_traceback(faulty):
    error = outcome_of("base_exception")
    assert error.error_type == "PanicError"
    assert "index out of bounds" in error.error_message
    assert "in fit" in error.traceback


def test_exception_that_cannot_be_pickled_is_recorded(faulty):
    error = outcome_of("unpicklable")
    assert (error.error_type, error.error_message) == ("UnpicklableError", "cannot be pickled")


@pytest.mark.parametrize("fault", ["nan", "shape", "text"])
def test_invalid_predictions_are_an_error_and_never_a_score(faulty, fault):
    error = outcome_of(fault)
    assert (error.error_type, error.phase) == ("InvalidPredictionsError", "predict")


def test_nan_is_named_with_its_row(faulty):
    assert "row 5" in outcome_of("nan").error_message


def test_output_of_native_code_is_not_shown(faulty, capfd):
    results = run_tiny(tiny_config("noise"))
    assert len(results.results) == 1
    captured = capfd.readouterr()
    assert "noise" not in captured.out + captured.err


def test_library_that_cannot_be_imported_fails_all_its_cells_with_the_reason(faulty):
    results = run_tiny(tiny_config("none", library="broken_import"), tiny_config("slow"), seeds=2)
    assert len(results.results) == 2
    assert len(results.errors) == 2
    assert "libfoo.so.1" in results.errors[0].error_message
    assert results.errors[0].phase == "start"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="boosters needs Python 3.12")
def test_rust_panic_of_boosters_itself_costs_one_cell(faulty):
    error = outcome_of("rust_panic")
    assert (error.error_type, error.phase) == ("PanicException", "fit")
    assert "out of bounds" in error.error_message
    assert "panicked at" in error.stderr_tail


def test_spawned_processes_give_the_same_outcome_as_forked_ones(faulty, monkeypatch):
    forked = run_tiny(tiny_config("none"))
    monkeypatch.setenv("BOOSTERS_EVAL_START_METHOD", "spawn")
    spawned = run_tiny(tiny_config("none"), tiny_config("segfault"))
    assert spawned.results[0].start_method == "spawn"
    assert spawned.results[0].metrics == forked.results[0].metrics
    many = run_tiny(tiny_config("none"), seeds=5, jobs=4)
    assert (len(many.results), many.errors) == (5, [])
    assert spawned.errors[0].signal == "SIGSEGV"
