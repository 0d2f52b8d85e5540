"""What cells cost in earlier runs on this machine, for an estimate; reading it needs no scientific package."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from boosters_eval.core.files import MAX_TEXT, check_regular, read_text
from boosters_eval.core.home import home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_RUNS = 20  # the latest ones are enough
_LINES = 5_000  # per run
_OVERHEAD = 0.05  # seconds per cell in addition to building, training and predicting


def seconds_by_cell(where: Path | None = None) -> dict[tuple[str, str, str, str], float]:
    """Median seconds per cell, by data set, booster, library and training parameters (as canonical JSON)."""
    root = home(where) / "runs"
    journals = sorted(root.glob("*/journal*.jsonl"), key=lambda path: path.lstat().st_mtime, reverse=True)
    seen: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for journal in journals[:_RUNS]:
        for key, seconds in _costs(journal):
            seen[key].append(seconds + _OVERHEAD)
    return {key: median(values) for key, values in seen.items()}


def _costs(journal: Path) -> Iterator[tuple[tuple[str, str, str, str], float]]:
    """The costs in one journal; a file that cannot be read has none."""
    try:
        plan = json.loads(read_text(journal.parent / "plan.json"))
        training = {
            config["name"]: json.dumps(config["training"], sort_keys=True)
            for config in plan.get("specs") or plan["configs"]
            if "training" in config and "protocol" not in config  # a paper's way costs what no suite would
        }
        check_regular(journal)
        with journal.open("rb") as file:
            for line in islice(iter(lambda: file.readline(MAX_TEXT), b""), _LINES):
                result = json.loads(line).get("result")
                known = result is not None and result.get("config_name") in training
                if known and result.get("train_time_s") is not None:
                    key = (
                        result["dataset_name"],
                        result.get("booster_type", "gbdt"),
                        result["library"],
                        training[result["config_name"]],
                    )
                    yield key, result["train_time_s"] + (result.get("predict_time_s") or 0.0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
