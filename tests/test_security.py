"""Every test that SECURITY.md gives as proof exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_proof_exists():
    text = (ROOT / "SECURITY.md").read_text()
    proofs = re.findall(r"`((?:tests/)?[\w/]*test_\w+\.py)(?:::(\w+))?`", text)
    assert len(proofs) > 20
    for file, name in proofs:
        (path,) = [path for path in (ROOT / "tests").rglob("*.py") if str(path).endswith(f"/{file}")]
        assert not name or f"def {name}(" in path.read_text(), f"{file}::{name}"
