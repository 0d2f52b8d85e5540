"""The gate judges the rows that the renderings show."""

from __future__ import annotations

from typing import Any

from boosters_eval.programs.parity.findings import decide
from boosters_eval.programs.parity.rows import ParityRow


def row(backend: str, verdict: str, data: str, day: int, **changes: Any) -> ParityRow:
    given = {"method": "m", "n": 9, "p": 1, "threads": 1, "own": True, "status": "ok", "data_digest": data}
    at = f"2026-01-0{day}T00:00:00+00:00"
    return ParityRow(**{**given, "backend": backend, "verdict": verdict, "measured_at": at, **changes})


def test_what_was_found_on_older_data_neither_fails_nor_passes_the_gate() -> None:
    mended = [row("a", "divergent", "old", 1), row("a", "rounding", "new", 2)]
    assert decide(mended).exit_code == 0
    assert decide(mended[::-1]).summary == "AGREE: 1 cell judged, 0 divergent, 0 without a result"
    broken = [row("a", "rounding", "old", 1), row("a", "divergent", "new", 2)]
    assert decide(broken).exit_code == 1


def test_a_binding_that_has_only_older_data_has_no_result() -> None:
    found = decide([row("a", "rounding", "old", 1), row("b", "rounding", "new", 2)])
    assert found.exit_code == 2
    assert found.without_result[0].startswith("m 9x1 a, 1 thread: only measured on other data")
    assert decide([row("a", "rounding", "old", 1, own=False), row("b", "rounding", "new", 2)]).exit_code == 0
