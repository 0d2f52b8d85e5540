"""The pool that stays open between the calls of a process: what they share is imported once, not once per call.

On a node of a cluster it stays open between the programs that use the node.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.core.machine import list_cpus
from boosters_eval.engine.pool import LocalPool, choose_start_method
from boosters_eval.engine.processes import find_program_path

if TYPE_CHECKING:
    from collections.abc import Iterator

IDLE = 300.0  # seconds after which the memory is given back
# What pytest sets for each test, and scikit-learn for itself when it is imported, means nothing to a lane.
_PASSING = frozenset({"PYTEST_CURRENT_TEST", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"})


@dataclass
class _Kept:
    """The pool of this process, and what its workers inherited when they were started."""

    pool: LocalPool | None = None
    inherited: Any = None
    in_use: bool = False
    timer: threading.Timer | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


_kept = _Kept()


@contextlib.contextmanager
def borrow_pool(jobs: int, cpus: list[int] | None = None, unset: tuple[str, ...] = ()) -> Iterator[LocalPool]:
    """The pool of this process. It stays open for the next call, unless this one is interrupted or fails.

    Whoever calls while another thread uses it gets a pool of its own.
    """
    pool = _take(jobs, cpus, unset)
    if pool is None:
        with LocalPool(jobs, kept=True, cpus=cpus, unset=unset) as own:
            yield own
        return
    try:
        yield pool
    except BaseException:
        pool.close()  # whatever it was doing, it begins anew
        raise
    finally:
        _give_back()


def close_kept() -> None:
    """Close the pool, if nobody uses it: its processes end, and their memory is given back."""
    with _kept.lock:
        if not _kept.in_use:
            _close()


def _take(jobs: int, cpus: list[int] | None, unset: tuple[str, ...]) -> LocalPool | None:
    inherited = (*_inherited(), unset)
    with _kept.lock:
        if _kept.in_use:
            return None
        if _kept.timer is not None:
            _kept.timer.cancel()
        if _kept.inherited != inherited:
            _close()
        if _kept.pool is None:
            _kept.pool, _kept.inherited = LocalPool(jobs, kept=True, unset=unset), inherited
        _kept.pool.resize(jobs, cpus)
        _kept.in_use = True
        return _kept.pool


def _give_back() -> None:
    with _kept.lock:
        _kept.in_use = False
        timer = threading.Timer(IDLE, close_kept)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # the main thread has ended, so there is no next call, and no thread can be started
            _close()
        else:
            _kept.timer = timer


def _close() -> None:
    if _kept.timer is not None:
        _kept.timer.cancel()
    if _kept.pool is not None:
        _kept.pool.close()
    _kept.pool = _kept.timer = None


def _inherited() -> tuple[Any, ...]:
    """What a worker takes over from this process when it starts, and keeps: if it has changed, others are started."""
    environment = {name: value for name, value in os.environ.items() if name not in _PASSING}
    return choose_start_method(), environment, find_program_path(), list_cpus(), Path.cwd()


def _forget() -> None:
    """In a fork of this process: the workers belong to the parent."""
    global _kept  # its lock may be held by a thread that does not exist here
    pool, _kept = _kept.pool, _Kept()
    if pool is not None:
        pool.abandon()


atexit.register(close_kept)
os.register_at_fork(after_in_child=_forget)
