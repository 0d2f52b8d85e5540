"""A benchmark in both profiles has one answer: best is only what wins in both."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.benchmark.benchmarks import Benchmarks, add_defaults
from boosters_eval.programs.benchmark.tables.brief import shorten
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.runners.parameters import Profile

NAME, OWN = "toy/gbdt", "toy/gbdt/defaults"
LIBRARIES = ("boosters", "lightgbm", "xgboost")


def run_of(meant, own, config=NAME, errors=(), spread=0.001, **changes):
    """Scores near 0.5 in both profiles, less what each library gains in them."""
    found = []
    for name, gains, profile in ((config, meant, "parity"), (f"{config}/defaults", own, "defaults")):

        def value(name, library, index, gains=gains):
            return 0.5 - gains.get(library, 0.0) + random.Random(f"{name}{library}{index}").gauss(0, spread)

        known = {"profile": profile, "booster_type": "gbdt", **changes}
        found += factories.grid(value, configs=(name,), libraries=LIBRARIES, seeds=5, **known)
    return factories.collection(found, errors)


def answers(*args, **changes):
    """What each table says of which library."""
    tables = build_tables(run_of(*args, **changes)).tables
    return [table.answer[0].removeprefix("Which: ") if table.answer else "" for table in tables]


def test_who_wins_in_both_profiles_is_best_and_is_said_to_be_so_in_both():
    first, second = answers({"xgboost": 0.1}, {"xgboost": 0.05})
    assert first.startswith("xgboost is best. Its RMSE is 20.4 % lower than that of boosters")
    assert first.endswith(". With each library's own defaults too.")
    assert "Better with" not in first
    assert second == ""


def test_an_order_that_turns_round_is_told_in_one_line_and_nobody_is_called_best():
    first, second = answers({"xgboost": 0.1}, {"lightgbm": 0.2})
    assert first == (
        "nobody is best in both profiles. Mapped by meaning, xgboost is ahead (RMSE: xgboost 0.399, boosters 0.500)."
        " With each library's own defaults, lightgbm is ahead (RMSE: lightgbm 0.300, xgboost 0.499). Better with their"
        " own defaults than mapped by meaning: lightgbm."
    )
    assert second == ""
    both, _ = answers({}, {"lightgbm": 0.1, "boosters": 0.1})
    assert "Better with their own defaults than mapped by meaning: boosters and lightgbm" in both


def test_a_win_in_one_profile_alone_is_no_win():
    (first, _), (other, _) = answers({"xgboost": 0.1}, {}), answers({}, {"xgboost": 0.1})
    for told in (first, other):
        assert told.startswith("nobody is best in both profiles. ")
        assert "cannot say who is ahead (RMSE: " in told or "are as good (RMSE: " in told
        assert "xgboost is ahead (RMSE: xgboost " in told


def test_where_nothing_beats_a_trivial_rule_nobody_is_ahead_in_either_profile():
    first, _ = answers({"xgboost": 0.1}, {"xgboost": 0.2}, trivial={"mean": {"rmse": 0.1}})
    assert first.startswith("none. Nothing is better than predicting the mean (0.1000): xgboost comes nearest")
    assert "own defaults, nothing is better than predicting the mean (0.1000): xgboost comes nearest" in first
    lines = build_tables(run_of({"xgboost": 0.1}, {}, trivial={"mean": {"rmse": 0.1}})).answer
    assert "lead" not in " ".join(lines)


def test_the_ranks_of_both_profiles_have_a_heading_each():
    found = [*run_of({"xgboost": 0.1}, {}).results, *run_of({}, {}, "iris/gbdt").results]
    headings = build_tables(factories.collection(found)).leaderboard.headings
    assert headings[1:3] == ("Average rank (gbdt, parity) ↓", "Average rank (gbdt, defaults) ↓")


def test_a_pair_that_turns_round_behind_the_leaders_is_told():
    first, _ = answers({"boosters": 0.1, "lightgbm": 0.1, "xgboost": 0.0}, {"xgboost": 0.1, "lightgbm": 0.1})
    assert (
        "Mapped by meaning, boosters is better than xgboost, but with each library's own defaults it is worse" in first
    )


def test_what_failed_in_either_profile_is_in_the_answer():
    failed = factories.error(OWN, "catboost", profile="defaults", booster_type="gbdt", dataset_name="toy")
    first, _ = answers({"xgboost": 0.1}, {"xgboost": 0.1}, errors=[failed])
    assert "All cells of catboost failed" in first


def test_the_headline_of_one_benchmark_is_its_answer_and_of_several_counts_what_wins_in_both():
    run = run_of({"xgboost": 0.1}, {"lightgbm": 0.2})
    document = build_document(run)
    assert document.answer[:2] == build_tables(run).tables[0].answer
    assert document.leaderboard is None
    both = run_of({"xgboost": 0.1}, {"xgboost": 0.1}, config="iron/gbdt").results
    document = build_document(factories.collection([*run.results, *both]))
    assert document.answer[0].startswith("Which, on toy: nobody is best in both profiles. ")
    assert document.answer[1].startswith("Which, on iron: xgboost is best. ")
    more = run_of({"xgboost": 0.1}, {"xgboost": 0.1}, config="gold/gbdt").results
    three = build_document(factories.collection([*run.results, *both, *more]))
    assert three.answer[0].startswith("Which: xgboost, best on 2 of 3 data sets")
    board = {row[0]: dict(zip(three.leaderboard.headings, row, strict=True)) for row in three.leaderboard.rows}
    assert board["xgboost"]["Depends on the profile"] == 1
    assert [ranking.name for ranking in document.rankings] == ["gbdt, parity", "gbdt, defaults"]
    assert any(command.endswith("--profile both") for command in document.reproduce)


GAINS = st.dictionaries(st.sampled_from(LIBRARIES), st.sampled_from((0.0, 0.0005, 0.1, 0.2)))


@settings(max_examples=60, deadline=None)
@given(GAINS, GAINS)
def test_best_is_said_only_of_who_is_highlighted_in_both_profiles(meant, own):
    meant_table, own_table = build_tables(run_of(meant, own)).tables
    winners = [{row.label for row in table.rows if row.cells[0].best} for table in (meant_table, own_table)]
    which = meant_table.answer[0].removeprefix("Which: ")
    said = re.match(r"(\w+) is best\. ", which)
    assert (said[1] if said else None) == next(iter(winners[0] & winners[1]), None)
    assert which.startswith("nobody is best in both profiles. ") == (winners[0] != winners[1])
    assert own_table.answer == ()


def test_each_benchmark_runs_by_meaning_under_its_own_name_and_once_more_by_defaults():
    config = factories.config()
    both = add_defaults(Benchmarks("compare", (config,))).configs
    assert [(one.name, one.profile) for one in both] == [(NAME, Profile.PARITY), (OWN, Profile.DEFAULTS)]
    with pytest.raises(ConfigError, match="cannot be both where variants are compared"):
        add_defaults(Benchmarks("compare", (config.replace(variant="deep"),)))


def test_how_sure_both_profiles_are_is_told_once_where_it_is_the_same():
    gaps = {"lightgbm": 0.0, "boosters": 0.0, "xgboost": 0.0}
    lines = build_tables(run_of(gaps, {"xgboost": -0.3}, spread=0.02)).answer
    assert lines[1].startswith(
        "How sure: not sure: the best mean may be chance. With each library's own defaults, 95 % sure that xgboost is"
        " worse than "
    )
    assert re.search(r"own defaults, cannot say who is ahead, but xgboost is worse than \w+ \(RMSE: ", lines[0])


def test_the_short_tables_say_which_profile_they_show():
    (section, *_) = shorten(build_tables(run_of({"xgboost": 0.1}, {}))).sections
    titles = [block.table.title for block in section.blocks]
    assert titles == ["toy, mapped by meaning (5 splits)", "toy, library defaults (5 splits)"]
