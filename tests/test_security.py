"""SECURITY.md says only what a test shows: every promise names its tests, and every test exists."""

import re

from proofs import PROOF, ROOT, find_unproven, list_tests


def test_every_proof_exists_and_is_a_test():
    text = (ROOT / "SECURITY.md").read_text()
    proofs = PROOF.findall(text)
    assert len(proofs) > 40
    assert text.count("tests/") == len(proofs), "each names a file and a test of it, within one pair of backticks"
    assert find_unproven(text) == []


def test_name_that_is_only_mentioned_is_no_proof(tmp_path):
    (tmp_path / "test_a.py").write_text(
        "# def test_b(\ndef helper():\n    def test_c(): ...\n@pytest.mark.skip\ndef test_d(): ...\ndef test_e(): ...\n"
    )
    assert list_tests(tmp_path / "test_a.py") == {"helper", "test_e"}


def test_every_promise_has_a_proof():
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not re.match(r"\| (Held by|Threat) \|", row)]
    assert len(promises) > 25
    assert [row for row in promises if not PROOF.search(row.rstrip(" |").rpartition(" | ")[2])] == []
