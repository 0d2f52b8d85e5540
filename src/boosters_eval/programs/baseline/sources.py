"""What may serve as a baseline: its own file, or the results that a run or a JSON report left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import MAX_RESULTS, load_json, read_text
from boosters_eval.core.terms import the
from boosters_eval.programs.baseline.findings import UNNAMED
from boosters_eval.programs.baseline.model import Baseline, load_baseline
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.benchmark.results import REPORT_KIND, RESULTS_KIND, ResultCollection

_KINDS = (RESULTS_KIND, REPORT_KIND)


def read_baseline(path: Path) -> Baseline:
    """A baseline file, or the baseline of a results file or JSON report, which must be complete for it."""
    text = read_text(path, limit=MAX_RESULTS)
    raw = load_json(text, str(path)) if any(f'"{kind}"' in text for kind in _KINDS) else None
    if not isinstance(raw, dict) or raw.get("kind") not in _KINDS:
        return load_baseline(path)
    return make_baseline(ResultCollection.from_json(text, source=str(path)))


def given_baseline(value: Any, parameter: str) -> tuple[Baseline, str]:
    """The baseline that a user passes as this parameter, and what it is called."""
    if isinstance(value, Baseline):
        return value, UNNAMED
    if isinstance(value, Path):
        return read_baseline(value), str(value)
    raise ConfigError(f"{the(parameter)} must be a file or a Baseline. Got {value!r} instead.")
