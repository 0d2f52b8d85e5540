"""The examples of the documentation run, and print what it says they print."""

import re
import runpy
from pathlib import Path

import pytest

from boosters_eval import EXECUTORS, OBSERVERS, RUNNERS, WORKLOADS

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
EXAMPLE = re.compile(r"<!-- example: (\w+\.py) -->\n```python\n(.*?)```\n```text\n(.*?)```", re.DOTALL)
EXAMPLES = {name: (code, printed) for name, code, printed in EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))}


def test_every_seam_has_an_example():
    sections = [part.partition("\n")[0] for part in PAGE.read_text(encoding="utf-8").split("## Adding ")[1:]]
    assert sections == ["a workload", "a target", "an executor", "an observer", "a rendering"]
    assert len(EXAMPLES) == len(sections)


@pytest.fixture
def as_before():
    """What an example registers is taken out again."""
    registries = (EXECUTORS, OBSERVERS, RUNNERS, WORKLOADS)
    known = [set(registry) for registry in registries]
    yield
    for registry, names in zip(registries, known, strict=True):
        for name in set(registry) - names:
            registry.unregister(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_and_prints_what_the_page_says(name, home, tmp_path, monkeypatch, capsys, as_before, kept_pool):
    """As the main program, but in this process, which has the lanes of most libraries already."""
    code, printed = EXAMPLES[name]
    if '"boosters"' in code and (reason := RUNNERS["boosters"].missing()):
        pytest.skip(reason)
    (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(tmp_path / name), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == printed.splitlines()


def test_every_file_of_the_walk_exists():
    package = Path(__file__).parents[1] / "src" / "boosters_eval"
    named = set(re.findall(r"`((?!benchmarks/|scripts/)[a-z_]+(?:/[a-z_]+)*\.py)`", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (package / name).is_file()] == []
