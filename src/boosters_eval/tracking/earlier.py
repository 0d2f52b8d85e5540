"""Sending a run that was executed before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import RunError
from boosters_eval.engine.kinds import kind_of_run
from boosters_eval.engine.runs import find_run
from boosters_eval.engine.summaries import is_running
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
    """Send a run of any kind, the latest finished attempt of several; sending it again changes nothing."""
    folder = find_run(reference, where)
    if is_running(folder.path):
        raise RunError(f"Run {folder.run_id} is being executed by another process; wait for it or stop it.")
    attempt = folder.shown()
    kind_of_run(folder.load(attempt), folder).findings  # noqa: B018 (refuses what cannot be read, or was changed)
    observer = TrackingObserver(trackers, where, say=say, wait=timeout)
    observer.follow(folder.path, attempt)
    lacking = observer.finish(timeout)
    if lacking:
        raise RunError(" ".join(lacking))
