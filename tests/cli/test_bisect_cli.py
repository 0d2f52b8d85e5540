"""`bisect` at the command line: mistakes, what is printed and written, exit codes."""

import io
import json

import pytest

from boosters_eval.programs.bisect.answer import Bisection, BisectionStep, NumberShift, render_step
from boosters_eval.programs.bisect.search import Bisector
from boosters_eval.reports.numbers import MISSING

VERSIONS = ("bisect", "-l", "lightgbm", "--versions", "4.3.0", "4.5.0", "4.7.0", "-d", "diabetes")
END = BisectionStep(
    earlier="4.3.0",
    candidate="4.7.0",
    later="4.7.0",
    answer="changed",
    reason="changed: +2.0 % (+1.5 % to +2.5 %)",
    seeds=5,
    values={"4.3.0": 0.45, "4.7.0": 0.46},
)
SKIPPED = BisectionStep(
    earlier="4.3.0", candidate="4.5.0", later="4.7.0", answer="unusable", reason="skipped: no | wheel"
)


def found(**changes):
    return Bisection(
        **{
            "answer": "rmse of lightgbm on diabetes changed from 0.45 to 0.46.",
            "state": "found",
            "library": "lightgbm",
            "dataset": "diabetes",
            "metric": "rmse",
            "tolerance": 0.01,
            "alpha": 0.05,
            "max_seeds": 50,
            "versions": ("4.3.0", "4.5.0", "4.7.0"),
            "earlier": "4.3.0",
            "later": "4.7.0",
            "shift": NumberShift(before=0.45, after=0.46, percent=2.0),
            "unusable": {"4.5.0": "no | wheel"},
            "steps": (END, SKIPPED),
            **changes,
        }
    )


@pytest.fixture
def searched(monkeypatch):
    """A search whose steps are known; what it is given is real."""

    def answer(result):
        def run(self):
            for step in result.steps:
                self._end(step)
            return result

        monkeypatch.setattr(Bisector, "run", run)

    return answer


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-l", "lightgbm"), "Use either --versions, --wheels or --folder to say which versions to search."),
        (
            ("-l", "lightgbm", "xgboost", "--versions", "1", "2"),
            "The '--library' option of bisect must be a single one.",
        ),
        (("-l", "lightgbm", "--versions", "4.3"), "The '--versions' option must be A..B, such as 4.3..4.7."),
        (("-l", "nope", "--versions", "1", "2"), "Unknown library 'nope'."),
        (("-l", "lightgbm", "--versions", "1", "2", "--tolerance", "2"), "The '--tolerance' option must be a share"),
        (("-l", "lightgbm", "--versions", "1", "2", "-f", "csv"), "must be markdown, json or html. Got 'csv'"),
        (
            ("-l", "lightgbm", "--versions", "1", "2", "-d", "iris", "wine"),
            "'--dataset' option of bisect must be a single",
        ),
        (("-l", "lightgbm", "--versions", "1", "2", "-v", "-q"), "Use either --verbose or --quiet, not both."),
        ((), "The '--library' option is required."),
        (
            ("-l", "lightgbm", "--versions", "1", "2", "--commits", "a..b"),
            "The '--commits' option must come with a folder",
        ),
        (
            ("-l", "lightgbm", "--folder", "."),
            "The '--commits' option must be GOOD..BAD, such as v1.2..main. Got none.",
        ),
        (("-l", "lightgbm", "--folder", ".", "--commits", "a"), "The '--commits' option must be GOOD..BAD"),
        (("-l", "lightgbm", "--versions", "1", "--wheels", "a.whl"), "Got --versions and --wheels."),
        (("-l", "lightgbm", "--versions", "1", "2", "--alpha", "0.5"), "The '--alpha' option must be a chance above 0"),
        (
            ("-l", "lightgbm", "--versions", "1", "2", "--resume", "--rerun-failed"),
            "Use either --resume or --rerun-failed",
        ),
        (("-l", "lightgbm", "--versions", "1", "2", "--observer", "lnes"), "Unknown observer 'lnes'."),
        (
            ("-l", "lightgbm", "--versions", "1", "2", "-o", "a.csv"),
            "The '--output' option must end in .md, .txt, .json or .html",
        ),
    ],
)
def test_a_mistake_is_one_sentence(boosters_eval, place, arguments, sentence):
    assert sentence in boosters_eval("bisect", *arguments, check=3).stderr


def test_a_dry_run_lists_the_versions_and_how_many_steps_they_take(boosters_eval, place):
    assert boosters_eval(*VERSIONS, "--dry-run", check=0).stdout.splitlines() == [
        "3 versions of lightgbm from 4.3.0 to 4.7.0: at most 2 steps, each decided with 5, 10, 20, 50 seeds.",
        "  4.3.0",
        "  4.5.0",
        "  4.7.0",
    ]


def test_the_steps_are_shown_as_they_end_and_the_answer_comes_first(boosters_eval, place, searched):
    searched(found())
    done = boosters_eval(*VERSIONS, check=0)
    assert done.stdout.splitlines()[:2] == [
        "rmse of lightgbm on diabetes changed from 0.45 to 0.46.",
        "4.5.0 was skipped: no | wheel.",
    ]
    assert "both ends" in done.stderr
    assert "+2.0 % (+1.5 % to +2.5 %)" in done.stderr
    quiet = boosters_eval(*VERSIONS, "-q", check=0)
    assert quiet.stderr == ""
    assert quiet.stdout == done.stdout


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize("width", [60, 80])
def test_steps_become_records_where_a_terminal_has_no_room_for_their_columns(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stderr", Terminal())
    lines = [line for number, step in enumerate((END, SKIPPED), 1) for line in render_step(number, step)]
    assert lines == [
        "1, both ends",
        "  Between  4.3.0 .. 4.7.0",
        "  Value    0.4500, 0.4600",
        "  Seeds    5",
        "  Answer   changed: +2.0 % (+1.5 % to +2.5 %)",
        "2, 4.5.0",
        "  Between  4.3.0 .. 4.7.0",
        f"  Value    {MISSING}",
        f"  Seeds    {MISSING}",
        "  Answer   skipped: no | wheel",
    ]


def test_answers_of_steps_are_broken_within_their_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stderr", Terminal())
    heading, *lines = render_step(1, END)
    place = heading.index("Answer")
    assert [line[place:] for line in lines] == ["changed: +2.0 % (+1.5 % to", "+2.5 %)"]
    assert lines[1][:place].strip() == ""


def test_the_answer_is_written_as_markdown_or_json(boosters_eval, place, searched):
    searched(found())
    assert found().answer in boosters_eval(*VERSIONS, "-o", "answer.json", check=0).stderr
    text = (place / "answer.json").read_text()
    assert json.loads(text)["schema_version"] == 10
    assert Bisection.model_validate_json(text) == found()
    markdown = boosters_eval(*VERSIONS, "-f", "markdown", check=0).stdout
    assert markdown.startswith(
        "# Bisection of lightgbm\n\n## Answer\n\nrmse of lightgbm on diabetes changed from 0.45 to 0.46.\n"
    )
    assert r"no \| wheel" in markdown
    boosters_eval(*VERSIONS, "-o", "answer.html", check=0)
    assert "4.5.0 was skipped: no | wheel." in (place / "answer.html").read_text()


def test_what_cannot_be_told_exits_with_1(boosters_eval, place, searched):
    searched(found(state="undecided"))
    boosters_eval(*VERSIONS, check=1)


def test_an_interruption_names_the_command_that_continues(boosters_eval, place, monkeypatch):
    def interrupted(self, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Bisector, "_ends", interrupted)
    monkeypatch.setattr("sys.argv", ["boosters-eval", *VERSIONS])
    done = boosters_eval(*VERSIONS, check=130)
    assert f"boosters-eval {' '.join(VERSIONS)} --resume" in done.stderr
