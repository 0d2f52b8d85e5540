"""SECURITY.md says only what a test shows: every promise names its tests, and every test exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROOF = re.compile(r"`([\w/]*test_\w+\.py)(?:::(\w+))?`")


def test_every_proof_exists_and_names_a_test():
    proofs = PROOF.findall((ROOT / "SECURITY.md").read_text())
    assert len(proofs) > 40
    for file, name in proofs:
        assert name, f"{file}: which of its tests?"
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"


def test_every_promise_has_a_proof():
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not re.match(r"\| (Held by|Threat) \|", row)]
    assert len(promises) > 25
    assert [row for row in promises if not PROOF.search(row.rstrip(" |").rpartition(" | ")[2])] == []
