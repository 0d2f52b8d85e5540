"""The pinned bounds. This file needs numpy and pytest alone: make test-matrix runs it on other versions."""

import importlib.util
import json
from pathlib import Path

import pytest

from boosters_eval.stats.bootstrap import compute_lower_bound_95

SNAPSHOT = Path(__file__).with_name("bootstrap_snapshot.json")
CASES = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
SCRIPT = Path(__file__).parents[2] / "scripts" / "regen_bootstrap_snapshot.py"


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_bound_is_pinned_to_the_last_bit(case):
    assert compute_lower_bound_95(case["scores"], run_id=case["run_id"]).hex() == case["bound"]


def test_the_specifications_example_is_pinned():
    scores = [0.5, 0.6, 0.7, 0.8, 0.9, 0.55, 0.65, 0.75, 0.85, 0.95]
    assert compute_lower_bound_95(scores, run_id="deadbeef00000000").hex() == "0x1.428f5c28f5c29p-1"


def test_a_hundred_reruns_are_byte_identical():
    scores = [0.6, 0.7, 0.8, 0.9, 0.55, 0.65, 0.75, 0.85, 0.5, 0.95]
    assert len({compute_lower_bound_95(scores, run_id="abc1234500000000").hex() for _ in range(100)}) == 1


def _script():
    spec = importlib.util.spec_from_file_location("regen_bootstrap_snapshot", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_operators_tool_finds_nothing_to_change(capsys):
    assert _script().main([]) == 0
    assert capsys.readouterr().out == f"0 of {len(CASES)} bounds differ.\n"


def test_the_operators_tool_repairs_a_stale_snapshot_only_when_told_to(tmp_path, capsys):
    stale = tmp_path / "snapshot.json"
    stale.write_text(json.dumps([{**CASES[0], "bound": "0x0.0p+0"}]), encoding="utf-8")
    before = stale.read_bytes()
    assert _script().main(["--snapshot", str(stale)]) == 1
    assert stale.read_bytes() == before
    assert "0x0.0p+0 -> 0x1.428f5c28f5c29p-1" in capsys.readouterr().out
    assert _script().main(["--snapshot", str(stale), "--write"]) == 0
    assert json.loads(stale.read_text(encoding="utf-8")) == [CASES[0]]
