"""The chain of a decision: what was changed by hand, a baseline, predictions or a decision, is found or said."""

import json
import shutil
import zipfile

import pytest

from boosters_eval.cli.app import run
from boosters_eval.programs.baseline.model import digest_content
from boosters_eval.programs.baseline.sidecar import locate_sidecar
from boosters_eval.programs.gate.model import GateDecision

TERMS = ["--threshold", "0.5", "--no-held-out", "--allow-low-coverage", "--output", "decision.json"]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A released version's baseline with its predictions, and a later run of the same suite, in one home."""
    place = tmp_path_factory.mktemp("chain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("BOOSTERS_EVAL_HOME", str(place / "home"))
        assert run(["baseline", "record", "released.json", "--suite", "minimal", "--seeds", "2", "-q"]) == 0
        assert run(["run", "--suite", "minimal", "--seeds", "2", "-q"]) == 0
    return place


@pytest.fixture
def here(story, tmp_path, monkeypatch):
    """A copy of it, which a test may change."""
    place = tmp_path / "copy"
    shutil.copytree(story, place, symlinks=True)
    monkeypatch.chdir(place)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(place / "home"))
    return place


def decide(*options):
    return run(["gate", "--run", "last", "--baseline", "released.json", *TERMS, *options])


def change(path, edit, *, sealed=False):
    """Change a baseline by hand; `sealed` computes its digest again, as somebody would who knows how."""
    raw = json.loads(path.read_text())
    edit(raw)
    if sealed:
        raw["digest"] = digest_content(raw)
    path.write_text(json.dumps(raw))


def make_worse(raw):
    stats = raw["results"][0]["metrics"]["rmse"]
    stats["per_seed"] = {cell: 1.25 * value for cell, value in stats["per_seed"].items()}
    stats["mean"] *= 1.25


def test_an_untouched_baseline_is_verified_whole(here, capsys):
    assert run(["verify", "released.json"]) == 0
    when = json.loads((here / "released.json").read_text())["recorded_at"][:10]
    assert capsys.readouterr().out == f"released.json: as it was recorded, by its own word on {when}\n"
    assert decide() == 1  # two data sets are too few for a promotion, but it is decided
    assert json.loads((here / "decision.json").read_text())["source"]["baseline_unchecked"] == []
    assert run(["verify", "decision.json"]) == 0


@pytest.mark.parametrize("sealed", [False, True])
def test_a_metric_that_was_changed_by_hand_is_found(here, capsys, sealed):
    change(here / "released.json", make_worse, sealed=sealed)
    assert decide() == 2
    told = "is not what run" if sealed else "it was changed after it was recorded"
    found = capsys.readouterr().err
    assert "released.json cannot serve as a baseline: " in found
    assert told in found
    assert run(["verify", "released.json"]) == 2
    assert told in capsys.readouterr().out


def test_a_journal_that_is_not_its_own_is_found(here, capsys):
    def other(raw):
        next(iter(raw["sources"].values()))["journal"] = "0" * 64

    change(here / "released.json", other, sealed=True)
    assert decide() == 2
    assert "it names another journal" in capsys.readouterr().err


def test_predictions_that_were_changed_are_found(here, capsys):
    place = locate_sidecar(here / "released.json")
    with zipfile.ZipFile(place) as file:
        content = {name: bytearray(file.read(name)) for name in file.namelist()}
    next(iter(content.values()))[-1] ^= 1
    with zipfile.ZipFile(place, "w") as file:
        for name, data in content.items():
            file.writestr(name, bytes(data))
    assert decide() == 2
    assert run(["verify", "released.json"]) == 2
    assert "was changed: the predictions" in capsys.readouterr().out


def test_what_cannot_be_checked_is_said_in_the_decision(here, capsys):
    source = next(iter(json.loads((here / "released.json").read_text())["sources"].values()))
    locate_sidecar(here / "released.json").unlink()
    for name in ("journal.jsonl", "environment.json"):
        (here / "home" / "runs" / source["run_id"] / name).rename(here / f"away-{name}")
    assert decide() == 1
    said = json.loads((here / "decision.json").read_text())
    unchecked = said["source"]["baseline_unchecked"]
    assert [part in told for part, told in zip(("predictions", "not in this home"), unchecked, strict=True)] == [
        True
    ] * 2
    assert "Not checked of the baseline: run" in capsys.readouterr().out
    assert run(["verify", "released.json"]) == 0
    assert "not checked: run" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["recorded_at", "sources"])
def test_a_baseline_cannot_be_dated_before_its_run(here, capsys, place):
    """Else the recorded run could be held against itself, as if it had begun later."""

    def date(raw):
        for part in [raw] if place == "recorded_at" else raw["sources"].values():
            part["recorded_at"] = "2020-01-01T00:00:00Z"

    change(here / "released.json", date, sealed=True)
    assert decide() == 2
    assert "it says that it was recorded before" in capsys.readouterr().err


def test_a_source_has_the_name_of_its_run(here, capsys):
    change(here / "released.json", lambda raw: next(iter(raw["sources"].values())).update(attempt=7), sealed=True)
    assert decide() == 3
    assert "under its own name" in capsys.readouterr().err


def test_a_run_of_which_pairs_were_merged_into_the_baseline_is_not_held_against_it(here):
    assert run(["run", "--suite", "minimal", "--seeds", "2", "-q"]) == 0
    assert run(["baseline", "update", "released.json", "--run", "last", "-d", "california", "-q"]) == 0
    assert decide() == 1
    said = json.loads((here / "decision.json").read_text())
    assert said["report"]["of_itself"]
    assert "from this very run" in str(said["objections"])


@pytest.mark.parametrize(
    ("field", "value"), [("baseline_unchecked", []), ("baseline_unchecked", ["nothing"]), ("baseline_runs", {})]
)
def test_what_nothing_vouches_for_cannot_be_taken_out_of_a_decision(here, capsys, field, value):
    def forget(raw):
        raw["sources"] = {}
        for result in raw["results"]:
            result["source"] = None

    change(here / "released.json", forget, sealed=True)
    assert decide() == 1
    said = GateDecision.model_validate(json.loads((here / "decision.json").read_text()))
    assert said.source.baseline_unchecked == ("no run vouches for 2 pairs",)
    forged = said.replace(source=said.source.replace(**{field: type(getattr(said.source, field))(value)}))
    if field == "baseline_unchecked":
        kept = [note for note in said.report.notes if "Not checked" not in note]
        added = [f"Not checked of the baseline: {end}." for end in value]
        forged = forged.replace(report=said.report.replace(notes=(*kept, *added)))
    (here / "decision.json").write_text(forged.text())
    assert run(["verify", "decision.json"]) == 2


def test_the_version_of_the_library_is_that_of_the_run(here):
    assert decide() == 1
    text = (here / "decision.json").read_text()
    version = json.loads(text)["report"]["versions"]["boosters"]
    (here / "decision.json").write_text(text.replace(f'"boosters": "{version}"', '"boosters": "9.9"'))
    assert run(["verify", "decision.json"]) == 2


def test_a_decision_that_was_changed_is_found(here, capsys):
    assert decide() == 1
    text = (here / "decision.json").read_text()
    (here / "decision.json").write_text(text.replace('"promoted": false', '"promoted": true'))
    assert run(["verify", "decision.json"]) == 2


def test_cells_that_were_taken_over_decide_nothing(here, capsys):
    assert run(["baseline", "check", "released.json", "-q"]) == 0
    assert decide() == 2
    assert "were taken over from earlier runs: train them anew" in capsys.readouterr().err


@pytest.fixture(scope="module")
def stated(story, tmp_path_factory):
    """A run whose plan states what it shall be decided by."""
    place = tmp_path_factory.mktemp("stated") / "copy"
    shutil.copytree(story, place, symlinks=True)
    policy = {"tier": "bronze", "threshold": 0.5, "held_out": []}
    (place / "policy.json").write_text(json.dumps(policy))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("BOOSTERS_EVAL_HOME", str(place / "home"))
        assert run(["run", "--suite", "minimal", "--seeds", "2", "--policy", "policy.json", "-q"]) == 0
    return place


@pytest.fixture
def there(stated, monkeypatch):
    monkeypatch.chdir(stated)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(stated / "home"))
    return stated


def gate(*options):
    terms = ["--no-held-out", "--allow-low-coverage", "--output", "stated.json"]
    return run(["gate", "--run", "last", "--baseline", "released.json", *terms, *options])


def later(place):
    return json.loads((place / "stated.json").read_text())["source"]["chosen_later"]


def test_terms_that_the_plan_states_need_not_be_given(there, capsys):
    assert gate() == 1
    assert later(there) == []
    assert "as stated before the run" in capsys.readouterr().out
    assert run(["verify", "stated.json"]) == 0


def test_a_choice_that_was_made_later_is_marked(there, capsys):
    assert gate("--threshold", "0.4") == 1
    assert later(there) == ["threshold (stated: 0.5)"]
    assert "chosen after the run: threshold (stated: 0.5)" in capsys.readouterr().out


def test_a_mark_cannot_be_taken_away(there):
    assert gate("--threshold", "0.4") == 1
    text = (there / "stated.json").read_text()
    (there / "stated.json").write_text(text.replace('"threshold (stated: 0.5)"', ""))
    assert run(["verify", "stated.json"]) == 2


def test_without_a_policy_all_terms_are_marked(here, capsys):
    assert decide() == 1
    said = json.loads((here / "decision.json").read_text())["source"]["chosen_later"]
    assert said == ["tier", "threshold", "held-out data sets"]
    assert run(["gate", "--run", "last", "--baseline", "released.json"]) == 3
    assert "'--threshold' option is required" in capsys.readouterr().err


def test_a_policy_in_the_plan_cannot_be_changed(there, capsys):
    (folder,) = [one for one in (there / "home" / "runs").iterdir() if '"policy": {' in (one / "plan.json").read_text()]
    plan = (folder / "plan.json").read_text()
    try:
        (folder / "plan.json").write_text(plan.replace('"threshold": 0.5', '"threshold": 0.4'))
        assert gate() == 2
        assert run(["verify", folder.name]) == 2
    finally:
        (folder / "plan.json").write_text(plan)


@pytest.mark.parametrize("text", ["[]", "{}", '{"tiers": "gold"}', '{"threshold": 2}', "nothing"])
def test_what_is_no_policy_is_refused(here, capsys, text):
    (here / "bad.json").write_text(text)
    assert run(["run", "--suite", "minimal", "--policy", "bad.json"]) == 3
    assert capsys.readouterr().err.count("\n") == 1
