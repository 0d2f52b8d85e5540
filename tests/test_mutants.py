"""`make mutants` on a toy: what tests notice, what they do not, and what is explained."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "mutants.py"
MODULE = '''"""A toy."""

__all__ = ["is_small"]
UNSEEN: int = 7


def is_small(number: int | None = None) -> bool:
    """Whether a number is below 1 + 1."""
    if not isinstance(number, int):
        raise ValueError(f"It is {1 + 1}, or" + " so.")
    return number < 2
'''
TEST = """from boosters_eval.stats.toy import is_small


def test_only_less_than_two_is_small():
    assert (is_small(1), is_small(2)) == (True, False)
"""


@pytest.fixture
def toy(tmp_path):
    for name, text in {
        "src/boosters_eval/__init__.py": "",
        "src/boosters_eval/stats/__init__.py": "",
        "src/boosters_eval/stats/toy.py": MODULE,
        "tests/conftest.py": "",
        "tests/stats/test_toy.py": TEST,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(toy, *options):
    command = [sys.executable, str(SCRIPT), "--root", str(toy), "--jobs", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_survivor_fails_until_a_line_explains_it(toy):
    code, said = run(toy)
    assert code == 1
    assert "4 mutants" in said
    assert "3 noticed, 0 explained, 1 unexplained" in said
    assert "Survived, line 4: stats/toy.py::-: UNSEEN: int = 7 -> UNSEEN: int = 8" in said
    assert "\n-UNSEEN: int = 7\n+UNSEEN: int = 8\n" in said
    (toy / "tests" / "mutants.txt").write_text(
        "# what no test can see\n"
        "stats/toy.py::-: UNSEEN: int = 7 -> UNSEEN: int = 8  # nobody uses it\n"
        "stats/toy.py::is_small: number < 2 -> number <= 2  # wrongly\n"
        "stats/gone.py::-: 1 -> 2  # once\n"
    )
    code, said = run(toy)
    assert code == 0
    assert "3 noticed, 1 explained, 0 unexplained" in said
    assert "Stale: a test notices it: stats/toy.py::is_small: number < 2 -> number <= 2" in said
    assert "Stale: there is no such mutant (any more): stats/gone.py::-: 1 -> 2" in said
    assert (toy / "src/boosters_eval/stats/toy.py").read_text() == MODULE


def test_tests_that_fail_anyway_notice_nothing(toy):
    (toy / "tests/stats/test_toy.py").write_text(TEST.replace("(True, False)", "(True, True)"))
    code, said = run(toy)
    assert code == 2
    assert "fail without any mutant" in said


def test_a_line_without_a_reason_explains_nothing(toy):
    (toy / "tests" / "mutants.txt").write_text("stats/toy.py::-: UNSEEN: int = 7 -> UNSEEN: int = 8\n")
    code, said = run(toy)
    assert code == 2
    assert "says no reason" in said


def test_an_edit_elsewhere_draws_the_same_mutants(toy):
    script = runpy.run_path(str(SCRIPT))
    path = toy / "src/boosters_eval/stats/toy.py"
    every = script["mutants_of"](path, "stats/toy.py")
    path.write_text("FIRST = 5\n" + MODULE)
    (first, *rest) = script["mutants_of"](path, "stats/toy.py")
    assert first.name == "stats/toy.py::-: FIRST = 5 -> FIRST = 6"
    for seed in range(20):
        before = [one.name for one in script["drawn"](every, 2, seed)]
        assert [one.name for one in script["drawn"](rest, 2, seed)] == before
        after = [one.name for one in script["drawn"]([first, *rest], 2, seed)]
        assert len({*after} - {*before}) == (first.name in after)
