"""What the plug-in and the tasks of a program are called on a cluster."""

from __future__ import annotations


def plugin_name(session: str) -> str:
    """What the plug-in of a program is called: another program on the same cluster has one of its own."""
    return f"boosters-eval-{session}"


def task_key(session: str, number: int | str) -> str:
    """What the task of a cell is called."""
    return f"boosters-eval-{session}-{number}"


def lease_key(session: str, address: str) -> str:
    """How the key of a task begins whose result the program holds for as long as it is there.

    The worker is part of it: dask copies the result of one that is retired to another, where it means nothing.
    """
    return f"boosters-eval-lease-{session}-{address}-"
