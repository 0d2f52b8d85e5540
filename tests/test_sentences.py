"""What readers stumbled over stays out of every sentence that a user can see: messages, help, docstrings and pages."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted((ROOT / "src" / "boosters_eval").rglob("*.py"))
STUMBLED_OVER = {
    r"\bfound out\b": "detected",
    r"\breliably shows? only\b": "can only detect gaps above about",
    r"\bdo but for\b": "are identical except for",
    r"\bso many processes\b": "N processes",
    r"\bwith a probability of .* at most\b": "false-alarm rate: at most",
    r"\bThe rooms\b": "Code layout",
    r"\bfor a try\b": "to try it",
    r"(?i)(?:col|behavi|neighb|fav|hon)our": "American spelling",
    r"(?i)(?:recogn|normal|summar|serial|standard|material|minim)is[ei]": "American spelling",
}


def sentences(path):
    """Every text constant of a module, or the lines of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text.splitlines()
    return [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


@pytest.mark.parametrize("pattern", STUMBLED_OVER)
def test_no_sentence_has_what_readers_stumbled_over(pattern):
    found = [
        f"{path.relative_to(ROOT)}: {text.strip()[:90]}"
        for path in (*PAGES, *MODULES)
        for text in sentences(path)
        if re.search(pattern, text)
    ]
    assert not found, f"say '{STUMBLED_OVER[pattern]}'"


def test_the_check_reads_messages_and_pages(tmp_path):
    (tmp_path / "a.py").write_text('raise ValueError(f"The separator was found out: {x}")\n')
    (tmp_path / "a.md").write_text("It is found out.\n")
    assert all(any("found out" in text for text in sentences(tmp_path / name)) for name in ("a.py", "a.md"))
