"""Files that are awkward in real ways: each is read rightly or refused, and what must be said about it is said."""

from pathlib import Path

import pytest
import yaml

from boosters_eval.cli.app import run

FOLDER = Path(__file__).parent
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml") if "." not in path.stem)  # data.csv.yaml is a sidecar


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A cache of this module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOOSTERS_EVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def test_there_are_many_cases_and_no_file_without_one():
    used = {yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))["file"] for name in CASES}
    there = {path.name for path in FOLDER.iterdir() if path.suffix not in (".yaml", ".py") and path.is_file()}
    assert len(used) >= 25
    assert there == used


@pytest.mark.parametrize("name", CASES)
def test_a_wild_file_is_read_or_refused_with_what_must_be_said(name, capsys):
    case = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    assert set(case) <= {"file", "target", "options", "exit", "says", "never"}
    item = str(FOLDER / case["file"]) + (f":{case['target']}" if case.get("target") else "")
    code = run(["datasets", "show", item, *case.get("options", [])])
    shown = capsys.readouterr()
    said = shown.out + shown.err
    assert code == case.get("exit", 0), said
    assert "Traceback" not in said
    assert "Internal error" not in said
    assert [text for text in case["says"] if text not in said] == [], said
    assert [text for text in case.get("never", []) if text in said] == [], said
