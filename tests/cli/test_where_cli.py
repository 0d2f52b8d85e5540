"""`where` on the command line."""

import json

from boosters_eval import compare
from tiny import FEW, shared_pool


def test_the_answer_comes_first_and_quietly_alone(boosters_eval):
    compare("diabetes", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
    done = boosters_eval("where", "last", "-l", "sklearn", "lightgbm")
    assert done.returncode == 0, done.stderr
    head = done.stdout.split("\n## ")[1]
    assert head.startswith("Answer")
    assert "sklearn" in head
    assert "boosters-eval where" in head
    quiet = boosters_eval("where", "-l", "sklearn", "lightgbm", "-q").stdout
    assert len(quiet.splitlines()) <= 4
    assert "|" not in quiet


def test_what_is_advised_about_an_attempt_is_about_that_attempt(boosters_eval):
    first, second = (
        compare("diabetes", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool()) for _ in range(2)
    )
    assert (first.reference, second.reference) == (f"{first.run_id}/1", f"{first.run_id}/2")
    told = boosters_eval("where", f"{first.run_id}/1", "-q").stdout
    assert f"boosters-eval where {first.run_id}/1 -d" in told
    shown = boosters_eval("runs", "show", f"{first.run_id}/1").stdout
    assert f"boosters-eval verify {first.run_id}/1\n" in shown
    report = boosters_eval("report", "--run", f"{first.run_id}/1", "--dry-run", "-f", "md").stdout
    assert f"boosters-eval report --run {first.run_id}/1\n" in report


def test_it_is_written_in_any_format(boosters_eval, tmp_path):
    compare("diabetes", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
    for ending in ("md", "html", "csv", "tex", "json"):
        path = tmp_path / f"where.{ending}"
        assert boosters_eval("where", "-o", str(path)).returncode == 0
        assert path.stat().st_size > 100
    assert json.loads((tmp_path / "where.json").read_text())["kind"] == "boosters-eval slices"


def test_wrong_arguments_are_a_sentence(boosters_eval):
    compare("diabetes", ["sklearn", "lightgbm"], seeds=2, training=FEW, executor=shared_pool())
    for words, sentence in (
        (("-l", "sklearm"), "Did you mean 'sklearn'?"),
        (("-d", "iris"), "Unknown data set 'iris'"),
        (("-m", "r2"), "'--metric' option must be made of errors that single rows have"),
        (("nothing",), "nothing"),
        (("-l", "a", "b", "c"), "Unknown library"),
    ):
        done = boosters_eval("where", *words)
        assert (done.returncode, done.stdout) == (3, "")
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
