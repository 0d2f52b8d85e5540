"""Sending a run that was executed before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import RunError
from boosters_eval.engine.runs import find_run
from boosters_eval.engine.summaries import is_running
from boosters_eval.programs.benchmark.running import BENCHMARK
from boosters_eval.tracking.observer import TrackingObserver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from boosters_eval.tracking.tracker import Tracker


def send_run(
    reference: str,
    trackers: Mapping[str, type[Tracker]],
    where: Path | None = None,
    *,
    timeout: float,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Send a run, the latest finished attempt of several; `last` is a benchmark. Sending it again changes nothing."""
    folder = find_run(reference, where, kind=BENCHMARK)
    if is_running(folder.path):
        raise RunError(f"Run {folder.run_id} is being executed by another process; wait for it or stop it.")
    attempt = folder.shown()
    folder.load(attempt)  # refuses what was changed
    observer = TrackingObserver(trackers, where, say=say, wait=timeout)
    observer.follow(folder.path, folder.run_id, attempt)
    lacking = observer.finish(timeout)
    if lacking:
        raise RunError(" ".join(lacking))
