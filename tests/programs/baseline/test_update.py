"""Merging a run into a baseline: what stays, what needs a reason, and what the file keeps of it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from boosters_eval import load_baseline, save_baseline, update_baseline
from boosters_eval.cli.app import run
from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.baseline.snapshot import make_baseline
from boosters_eval.programs.baseline.update import compare_pairs, merge_baselines

CA, BC = "california/gbdt", "breast_cancer/gbdt"


@pytest.fixture
def files(make, tmp_path, monkeypatch):
    """A baseline of four pairs, and results that are the same, better, worse and of one library."""
    monkeypatch.chdir(tmp_path)
    save_baseline(make_baseline(make.run()), "base.json")
    make.run().to_json("same.json")
    make.run({"boosters": 0.9}).to_json("better.json")
    make.run({(CA, "xgboost"): 1.1}).to_json("worse.json")
    make.run(libraries=("boosters",)).to_json("boosters.json")
    return tmp_path


def update(*options):
    return run(["baseline", "update", "base.json", *options])


def values(path="base.json"):
    return {result.key: result.primary.mean for result in load_baseline(path).results}


def test_what_gets_better_is_merged_without_a_reason(files, capsys):
    before = values()
    assert update("--results", "better.json", "--library", "boosters") == 0
    after = values()
    assert after[CA, "boosters"] < before[CA, "boosters"]
    assert {key: after[key] for key in after if key[1] == "xgboost"} == {
        key: before[key] for key in before if key[1] == "xgboost"
    }
    assert "| better" in capsys.readouterr().out
    assert load_baseline("base.json").accepted == ()


def test_what_gets_worse_needs_a_reason_which_the_file_keeps(files, capsys):
    before = Path("base.json").read_bytes()
    assert update("--results", "worse.json") == 3
    assert "Not updated: 1 pair would get worse (california/gbdt xgboost)" in capsys.readouterr().out
    assert Path("base.json").read_bytes() == before
    assert update("--results", "worse.json", "--accept", "a new default") == 0
    (accepted,) = load_baseline("base.json").accepted
    assert (accepted.reason, accepted.pairs) == ("a new default", ("california/gbdt xgboost: worse (+10.0 %)",))
    assert update("--results", "same.json") == 0  # better again: the reason stays on record
    assert len(load_baseline("base.json").accepted) == 1


def test_only_the_data_sets_that_are_named_are_merged(files):
    before = values()
    assert update("--results", "worse.json", "--dataset", "breast_cancer") == 0
    assert values() == before
    assert update("--results", "worse.json", "--dataset", "breast_cancr") == 3
    assert update("--results", "worse.json", "--dataset", "Breast-Cancer", "--library", "XGBoost") == 0
    assert values() == before


def test_a_library_that_did_not_run_stays(files):
    assert update("--results", "boosters.json") == 0
    assert len(values()) == 4


def test_a_pair_that_the_suite_has_no_more_needs_a_reason(make, files, capsys):
    fewer = make.run(configs=(CA,))
    fewer.to_json("fewer.json")
    assert update("--results", "fewer.json") == 3
    assert "2 pairs would go" in capsys.readouterr().out
    assert update("--results", "fewer.json", "--accept", "it was wrong") == 0
    assert [key[0] for key in values()] == [CA, CA]


def test_other_seeds_are_refused(make, files, capsys):
    make.run(seeds=2).to_json("two.json")
    assert update("--results", "two.json") == 3
    assert "is updated with its own seeds: it has 3 seeds, and the run 2 seeds" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_told(files, capsys):
    assert run(["baseline", "update", "none.json", "--results", "same.json"]) == 3
    assert "none.json does not exist" in capsys.readouterr().err


def test_the_function_gives_what_the_command_shows(make, files):
    found = update_baseline("base.json", results=make.run({"boosters": 1.5}))
    assert found.refused
    assert [change.became for change in found.changes] == ["worse", "same", "worse", "same"]
    assert values() == {result.key: result.primary.mean for result in make_baseline(make.run()).results}


def test_record_replaces_a_baseline_only_where_nothing_is_lost(files, capsys):
    record = ["baseline", "record", "base.json", "--results"]
    assert run([*record, "same.json"]) == 0
    assert run([*record, "better.json"]) == 0
    assert run([*record, "same.json"]) == 3
    told = capsys.readouterr().err
    assert "base.json is not replaced: 2 pairs would get worse (california/gbdt boosters" in told
    assert "--force" in told
    assert run([*record, "boosters.json"]) == 3
    assert "2 pairs would go (california/gbdt xgboost and breast_cancer/gbdt xgboost)" in capsys.readouterr().err
    assert run([*record, "boosters.json", "--force", "--quiet"]) == 0
    assert "Warning: by --force, 2 pairs" in capsys.readouterr().err
    assert len(values()) == 2


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=4, max_size=4), st.lists(st.floats(0.1, 10), min_size=4, max_size=4))
def test_nothing_gets_worse_unseen(then, now):
    def baseline(scores):
        pairs = [(config, library) for config in (CA, BC) for library in ("a", "b")]
        results = (
            factories.baseline_result(*pair, values={"42": score, "1379": score})
            for pair, score in zip(pairs, scores, strict=True)
        )
        return factories.baseline(*results, config={"seeds": (42, 1379)})

    old, new = baseline(then), baseline(now)
    found = merge_baselines(old, new)
    assert found.refused == any(b > a * (1 + 1e-9) for a, b in zip(then, now, strict=True))
    assert not any(change.needs_reason for change in compare_pairs(old.results, old.results))


def test_all_that_a_baseline_has_may_not_go(make):
    old = make_baseline(make.run(libraries=("boosters",)))
    new = make_baseline(make.run(libraries=("boosters",)))
    with pytest.raises(ConfigError, match="Unknown library of the run 'nobody'"):
        merge_baselines(old, new, libraries=("nobody",))
