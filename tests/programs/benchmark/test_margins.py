"""Margins: as they are written, as the statistics take them, and on the scale of errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval import compare
from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.metrics.metric import of_target
from boosters_eval.programs.benchmark.comparisons import compare_rows
from boosters_eval.programs.benchmark.margins import USUAL, Margin, Margins, check_margins
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.seeds import grow
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.stats.sequential import SequentialRule
from factories import collection, grid, remember, result


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ("1%", ("1%",)),
        (0.02, ("0.02",)),
        ({"auc_roc": 0.002, "rmse": "2 %"}, ("auc_roc=0.002", "rmse=2%")),
        (["3%", "r2=0.01"], ("3%", "r2=0.01")),
        ("ndcg@10,gain=linear=0.01", ("ndcg@10,gain=linear=0.01",)),
    ],
)
def test_python_gives_a_share_a_word_several_or_a_dict(given_, words):
    assert check_margins(given_) == words


@pytest.mark.parametrize(
    "wrong", ["", "x", "-1%", "100%", 1, -0.1, True, None, {"rmse": None}, ["1%", 2], float("nan")]
)
def test_what_is_no_margin_is_one_sentence(wrong):
    with pytest.raises(
        ConfigError, match=r"^The 'margin' parameter must be a share of the error such as 1%, .* instead\.$"
    ):
        check_margins(wrong)
    if wrong is not None:
        with pytest.raises(ConfigError, match=r"^The 'margin' parameter must be"):
            compare("california", margin=wrong)


def test_metrics_are_known_by_all_their_names_and_the_others_have_the_usual_margin():
    margins = Margins.of(("log_loss=0.01", "2%"))
    assert (margins.find("logloss"), margins.find("rmse")) == (Margin(0.01, is_share=False), Margin(0.02))
    assert (Margins.of(None).find("rmse"), Margins.of(()).spelled) == (USUAL, ("1%",))
    assert margins.tell(["logloss"]) == "within 2 % of the error; Log loss within 0.01"
    with pytest.raises(UnknownNameError, match="Did you mean 'rmse'"):
        Margins.of(("rsme=1%",))


@given(st.floats(0, 0.99), st.floats(0, 1e6))
def test_margins_are_read_back_as_they_are_spelled(share, value):
    margins = Margins.of(check_margins([str(share), f"rmse={value}"]))
    assert Margins.of(margins.spelled) == margins
    assert (margins.usual.size, margins.find("rmse").size) == (share, value)


def side_by_side(gap):
    """Two models whose R² and RMSE say the same: 1 minus R² is the square of the RMSE, of a target of variance 1."""

    def value(_config, library, index):
        return 0.3 + 0.001 * index + (gap if library == "b" else 0.0002 * (-1) ** index)

    return [
        item.model_copy(update={"metrics": {"rmse": item.metrics["rmse"], "r2": 1 - item.metrics["rmse"] ** 2}})
        for item in grid(value, libraries=("a", "b"), seeds=5)
    ]


def test_a_table_cannot_call_models_worse_by_rmse_and_equivalent_by_r2():
    """R² of 0.91 and 0.87 are within 5 % of each other, but what the second lacks is 44 % more, or 30 % less."""
    (table,) = build_tables(collection(side_by_side(0.06)), test="paired", margin="5%").tables
    verdicts = {pair.metric: pair for pair in table.pairs}
    assert {name: pair.verdict for name, pair in verdicts.items()} == {"rmse": "better", "r2": "better"}
    assert verdicts["r2"].percent == pytest.approx(30.4, abs=0.1)
    assert " by 30.4 % of 1 \N{MINUS SIGN} R² (n = 5)" in verdicts["r2"].text


def test_the_margin_decides_what_is_equivalent():
    run = collection(side_by_side(0.006))  # 2 % of RMSE, 4 % of what R² lacks

    def judged(margin):
        (table,) = build_tables(run, test="paired", margin=margin).tables
        return {pair.metric: pair.verdict for pair in table.pairs}

    assert judged(None) == {"rmse": "better", "r2": "better"}
    assert judged("3%") == {"rmse": "equivalent", "r2": "equivalent"}
    assert judged(["3%", "r2=0.0001"]) == {"rmse": "equivalent", "r2": "better"}
    assert judged({"r2": "6%"}) == {"rmse": "better", "r2": "equivalent"}
    assert judged(0) == {"rmse": "better", "r2": "better"}


def test_a_run_remembers_its_margin_in_a_file_too_and_what_is_given_comes_first():
    run = remember(collection(side_by_side(0.006)), margin=["3%"])
    again = ResultCollection.from_json(run.to_json())
    assert again.metadata.margins().spelled == ("3%",)
    assert again.metadata.margins("1%").spelled == ("1%",)
    assert "within 3 %" in again.to_markdown(test="paired")
    assert "within 3 %" not in again.to_markdown(test="paired", margin="1%")
    assert list(again.best("rmse", test="paired")["best"]) == ["tie"]
    assert list(again.best("rmse", test="paired", margin="1%")["best"]) == ["a"]
    broken = run.to_json().replace('"3%"', '"3 apples"')
    with pytest.raises(ConfigError, match=r"metadata\.margin.*not a share of the error"):
        ResultCollection.from_json(broken)


def test_seeds_are_added_until_every_pair_has_a_verdict_by_the_margin():
    """The margin of the run decides when `seeds="auto"` may stop, too."""
    counts = []

    def value(_config, library, index):
        return 0.5 + 0.02 * (index % 3 - 1) * (library == "b")

    def grow_with(margin):
        def run(seeds):
            counts.append(seeds)
            return remember(collection(grid(value, libraries=("a", "b"), seeds=seeds)), margin=margin)

        grow(run, SequentialRule(max_seeds=20))

    grow_with(None)
    grow_with(["40%"])
    assert counts == [5, 10, 20, 5]


def test_a_margin_means_the_same_for_an_error_and_for_its_square():
    usual = Margins.of(None)
    assert usual.find("r2").size == pytest.approx(1.01**2 - 1)
    assert usual.tell(["rmse", "r2"]) == "within 1 % of the error; of 1 \N{MINUS SIGN} R², a squared error, 2.01 %"
    own = Margins.of(("r2=0.01",))
    assert (own.find("r2"), own.tell(["r2"])) == (
        Margin(0.01, is_share=False),
        "within 1 % of the error; R² within 0.01",
    )
    rng = np.random.default_rng(0)
    for apart in (0.5, 0.9, 1.1, 2.0):  # in margins
        noise = 1e-4 * rng.normal(size=5)
        sides = {"a": 1 + noise, "b": 1 + 0.01 * apart + noise + 1e-5 * rng.normal(size=5)}
        verdicts = []
        for metric in ("rmse", "r2"):
            rows = {
                name: [
                    result(library=name, seed=seed, value=one if metric == "rmse" else 1 - 0.2 * one**2, metric=metric)
                    for seed, one in enumerate(values)
                ]
                for name, values in sides.items()
            }
            how = {"higher_is_better": metric == "r2", "test": "corrected", "alpha": 0.05}
            verdicts.append(compare_rows(rows, metric, **how).get("a", "b").verdict)
        assert verdicts[0] == verdicts[1] == ("equivalent" if apart < 1 else "better")


def test_a_margin_holds_for_the_forms_of_its_metric():
    margins = Margins.of(("ndcg=3%", "ndcg@5=4%", "rmse=0.2"))
    assert [margins.find(name).size for name in ("ndcg@10", "ndcg@5", "mrr")] == [0.03, 0.04, 0.01]
    assert margins.find(of_target("rmse", "price")) == Margin(0.2, is_share=False)
