"""`tune`, as it is typed."""

import json

SMALL = ("tune", "-d", "diabetes", "-l", "boosters,lightgbm", "-n", "3", "-s", "2", "-q")


def test_the_answer_is_told_and_every_library_has_the_same_trials(boosters_eval, tmp_path):
    file = tmp_path / "tuned.json"
    done = boosters_eval(*SMALL, "-o", str(file), check=0)
    labels = [line.partition(":")[0] for line in done.stdout.splitlines() if ": " in line]
    assert labels[:3] == ["Which", "Worth it", "How sure"]
    found = json.loads(file.read_text())
    libraries = found["tasks"][0]["libraries"]
    assert [one["trials"] for one in libraries] == [3, 3]
    assert [len(one["curve"]) for one in libraries] == [4, 4]
    assert found["cells"] == 2 * 2 * 4 * 2  # libraries, splits, trials with the defaults, inner and outer
