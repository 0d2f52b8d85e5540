"""What may serve as a baseline: its own file, or the results that a run or a JSON report left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.files import MAX_RESULTS, load_json, read_text
from boosters_eval.programs.baseline.model import Baseline, load_baseline
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.results import REPORT_KIND, RESULTS_KIND, ResultCollection

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = (RESULTS_KIND, REPORT_KIND)


def read_baseline(path: Path) -> Baseline:
    """A baseline file, or the baseline of a results file or JSON report, which must be complete for it."""
    text = read_text(path, limit=MAX_RESULTS)
    raw = load_json(text, str(path)) if any(f'"{kind}"' in text for kind in _KINDS) else None
    if not isinstance(raw, dict) or raw.get("kind") not in _KINDS:
        return load_baseline(path)
    return make_baseline(ResultCollection.from_json(text, source=str(path)))
