"""What version 0.1.0 measured still gives the tables and verdicts that it gave."""

import re
from pathlib import Path

import pytest

from boosters_eval.programs.benchmark.results import ResultCollection

RESULTS = sorted((Path(__file__).parents[2] / "legacy" / "results").glob("*.json"))


def test_there_are_results_to_look_at():
    assert {"auto", "cv", "failed", "timed", "variants"} <= {path.stem for path in RESULTS}


def reworded(text):
    """What version 0.1.0 wrote, with the two phrases that were changed on purpose since."""
    text = text.replace("Capacity differs (mean a model):", "Capacity differs (mean per model):")
    return re.sub("\u2013 {4}", "error", text)  # a row of nothing but failures had dashes in its cells


def without_levels(text):
    """All but what depends on the level of a column: highlights, the padding around them, and what could be shown."""
    text = re.sub(r"^- .*: judged at .*\n", "", text.replace("**", ""), flags=re.MULTILINE)
    text = re.sub(r"could have shown a difference of .*", "could have shown a difference", text)
    return re.sub(r" +|-{3,}", " ", text)


def in_one_order(text):
    """Version 0.1.0 had the notes on the mapping before those on the run."""
    return re.sub(
        r"(?:^- .*\n)+", lambda found: "".join(sorted(found[0].splitlines(keepends=True))), text, flags=re.MULTILINE
    )


def without_absent_rows(text):
    """Version 0.1.0 had only a note, and no row, on a library that does not support a config."""
    return re.sub(r"^\| \w+ +(\| unsupported +)+\| 0 +\|\n", "", text, flags=re.MULTILINE)


def without_answers(text):
    """Version 0.1.0 had no sentence between the title of a table and its rows."""
    return re.sub(r"^(## \S+/.*\n)\n[^|\n].*\n", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_the_markdown_is_the_same_but_for_what_the_levels_of_the_columns_decide(path):
    written = reworded(path.with_suffix(".md").read_text(encoding="utf-8"))
    now = without_answers(without_absent_rows(ResultCollection.load_partial(path).to_markdown()))
    assert in_one_order(without_levels(now)) == in_one_order(without_levels(written))
    assert set(re.findall(r"\*\*(.*?)\*\*", now)) <= set(re.findall(r"\*\*(.*?)\*\*", written))
