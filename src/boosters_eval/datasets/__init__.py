"""Data sets: the registry, where their rows come from, and how they are split."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from boosters_eval.datasets.catalog import DATASETS, register_dataset
from boosters_eval.datasets.config import Table
from boosters_eval.datasets.resolve import resolve_dataset

if TYPE_CHECKING:
    from boosters_eval.datasets.splits import Split, hold_out_rows, official_split, split_rows
    from boosters_eval.datasets.store import Stored, materialize, open_stored

# What needs numpy is found when it is used, so that listing data sets stays fast.
_WHERE = {
    "Split": "splits",
    "Stored": "store",
    "hold_out_rows": "splits",
    "materialize": "store",
    "official_split": "splits",
    "open_stored": "store",
    "split_rows": "splits",
}

__all__ = [
    "DATASETS",
    "Split",
    "Stored",
    "Table",
    "hold_out_rows",
    "materialize",
    "official_split",
    "open_stored",
    "register_dataset",
    "resolve_dataset",
    "split_rows",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'boosters_eval.datasets' has no attribute '{name}'")
    return getattr(import_module(f"boosters_eval.datasets.{_WHERE[name]}"), name)
