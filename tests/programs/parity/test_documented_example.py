"""The example of docs/parity.md, run as a reader would run it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.cli.app import run
from boosters_eval.programs.parity.backend import BACKENDS
from boosters_eval.programs.parity.method import GENERATORS, METHODS
from boosters_eval.programs.parity.rows import COLUMNS, read_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "parity.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(
    r"<!-- file: mine.py -->\n```python\n(.*?)```\n"
    r"\n    boosters-eval (.*?)\n    boosters-eval (.*?)\n\n```text\n(.*?)```",
    re.DOTALL,
)


def test_a_method_and_a_backend_in_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code, first, second, told) = EXAMPLE.findall(PAGE)[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    (tmp_path / "mine.py").write_text(code)
    known = [(registry, set(registry)) for registry in (METHODS, BACKENDS, GENERATORS)]
    monkeypatch.setattr(sys, "argv", ["boosters-eval", *first.split()])
    try:
        assert run([*first.split(), "--max-runs", "2", "-q"]) == 0
    finally:
        for registry, names in known:
            for name in set(registry) - names:
                registry.unregister(name)
    rows = [
        f"{row.method} {row.backend} {row.n}x{row.p} {row.verdict.value}"
        for row in read_rows(Path("mine.csv"))
        if row.verdict
    ]
    capsys.readouterr()
    assert run(second.split()) == 0
    assert "\n".join([*rows, capsys.readouterr().out]) == told


def named(section: str) -> set[str]:
    table = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }


def test_the_page_names_every_verdict_status_and_column() -> None:
    assert named("Verdicts") >= {item.value for item in ParityVerdict}
    assert named("Statuses") == {item.value for item in BindingStatus}
    assert named("The columns") == set(COLUMNS)
