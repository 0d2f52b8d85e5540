import pytest

from boosters_eval.baseline.evidence import paired_evidence
from boosters_eval.baseline.snapshot import Snapshot
from boosters_eval.core.repeat import Repeat
from boosters_eval.stats.significance import compare_pair

PAIR = ("california/gbdt", "boosters")
NOISE = (0.001, -0.002, 0.0, 0.003, -0.001)


def recorded(make, factor=1.0, **changes):
    """A record of five cells; `changes` is a function of the index of a cell."""
    run = make.run(seeds=5, libraries=("boosters",), configs=(PAIR[0],))
    run.results = [
        make.result(
            *PAIR, index, factor + (NOISE[index] if factor != 1 else 0), **{k: f(index) for k, f in changes.items()}
        )
        for index in range(5)
    ]
    return Snapshot.of_run(run).results[PAIR]


def evidence(then, now):
    return paired_evidence(then, now, "rmse", statistical=True, alpha=0.05)


def test_the_p_value_is_that_of_the_corrected_test(make):
    then, now = recorded(make), recorded(make, 1.02)
    sides = (list(record.metrics["rmse"].per_seed.values()) for record in (now, then))
    expected = compare_pair(*sides, higher_is_better=False, test_train_ratio=0.25)
    found = evidence(then, now)
    assert (found.p_value, found.significant) == (expected.p_value, True)


def test_folds_are_cells_of_their_own(make):
    folds = {"seed": lambda index: 42, "fold": lambda index: index}
    then, now = recorded(make, **folds), recorded(make, 1.02, **folds)
    assert [Repeat.parse(name) for name in then.metrics["rmse"].per_seed] == [Repeat(42, fold) for fold in range(5)]
    assert evidence(then, now).p_value == evidence(recorded(make), recorded(make, 1.02)).p_value


def test_seeds_on_one_official_split_are_too_few_for_a_test(make):
    official = {"split_digest": lambda index: "official"}
    found = evidence(recorded(make, **official), recorded(make, 1.02, **official))
    assert (found.p_value, found.significant) == (None, None)
    assert "too few cells for a test" in found.remark


@pytest.mark.parametrize(
    ("name", "text"), [("data_digest", "the data is not"), ("split_digest", "the split of cell 42 ")]
)
def test_what_is_not_alike_is_not_tested(name, text, make):
    found = evidence(recorded(make), recorded(make, 1.02, **{name: lambda index: "other"}))
    assert found.obstacle.startswith(text)
    assert found.p_value is None
