"""From cells to findings: agreement beside that of a library with itself, what is left out, and rows to look at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.engine.artifacts import save_array
from boosters_eval.metrics.task import Task
from boosters_eval.programs.importances.agreement import MARGIN, add_readings, count_top
from boosters_eval.programs.importances.judge import read_findings
from boosters_eval.programs.importances.records import Explanation, FeatureUnit, MeasuredKind, PairAgreement
from boosters_eval.programs.importances.tables import explain_marks, tell_reading, write_answer
from boosters_eval.reports.document import Details, PlainTable
from boosters_eval.reports.numbers import MISSING
from explained import NAMES, WEIGHTS, Cells, features
from factories import error


@pytest.fixture
def cells(tmp_path):
    return Cells(tmp_path)


def pair(findings, kind, a, b):
    return next(one for one in findings.agreement if (one.kind, one.a, one.b) == (kind, a, b))


def test_libraries_are_compared_split_by_split_and_each_with_itself_over_pairs_of_seeds(cells):
    (found,) = read_findings(cells.grid(seeds=4))
    between, own = pair(found, "gain", "alpha", "beta"), pair(found, "gain", "alpha", "alpha")
    assert (between.n, own.n) == (4, 6)
    assert between.tau == pytest.approx(1)
    assert between.low < 1 == between.high
    assert own.low < own.tau <= own.high == 1


def test_a_library_of_two_splits_has_one_agreement_with_itself_and_no_interval_of_it(cells):
    (found,) = read_findings(cells.grid(seeds=2))
    own = pair(found, "gain", "alpha", "alpha")
    assert (own.n, own.low, own.high) == (1, None, None)


def test_the_same_models_agree_wholly_in_every_measure(cells):
    (found,) = read_findings(cells.grid(("alpha", "gamma"), spread=0.3))  # names of one length: the same weights
    for kind in ("permutation", "gain", "split", "shap"):
        one = pair(found, kind, "alpha", "gamma")
        assert (one.tau, one.overlap) == (pytest.approx(1), pytest.approx(1))
    one = pair(found, "shap", "alpha", "gamma")
    assert (one.cosine, one.distance, one.largest) == (pytest.approx(1), 0, 0)
    predictions = pair(found, "predictions", "alpha", "gamma")
    assert (predictions.correlation, predictions.largest) == (pytest.approx(1), 0)
    assert [row for row in found.disputed if row.difference > 0] == []


def test_what_fails_a_check_is_left_out_of_agreement_by_its_kind_alone(cells):
    (found,) = read_findings(cells.grid(broken=("gamma",)))
    assert found.sound("shap") == ("alpha", "beta")
    assert found.sound("gain") == ("alpha", "beta", "gamma")
    assert {one.a for one in found.agreement if one.kind == "shap"} == {"alpha", "beta"}
    assert {one.b for one in found.agreement if one.kind == "gain"} == {"alpha", "beta", "gamma"}
    assert explain_marks(found)[0].startswith(
        "* gamma: attributions do not add up: off by 7.0 where raw scores differ by "
    )
    assert "Left out because of a failed check: gamma." in write_answer(found)
    assert {name for one in found.swarm for name in one.attributions} == {"alpha", "beta"}


def test_the_mark_disappears_by_itself_when_the_library_is_repaired(cells):
    (broken,) = read_findings(cells.grid(broken=("gamma",)))
    (repaired,) = read_findings(cells.grid())
    assert explain_marks(broken)
    assert explain_marks(repaired) == ()
    assert repaired.sound("shap") == ("alpha", "beta", "gamma")


def test_pairs_are_read_beside_the_libraries_themselves(tmp_path):
    cells = Cells(tmp_path, names=tuple("abcdefghij"), weights=np.linspace(1, 10, 10))
    (found,) = read_findings(cells.grid(("alpha", "beta"), spread=0.01, seeds=6))
    assert pair(found, "gain", "alpha", "beta").reading == "as much"
    assert tell_reading(found, "gain") == (
        "by gain, alpha and beta rank the features as much alike as each does with itself over seeds, or more"
        " (tau 1.00; with themselves 1.00)."
    )
    assert write_answer(found).startswith("Do they agree for the same reasons? Yes: by SHAP, alpha and beta rank")


def test_too_few_splits_give_no_verdict_but_what_would_help(cells):
    (found,) = read_findings(cells.grid(("alpha", "beta", "gamma"), spread=0.01, seeds=2))
    assert {one.reading for one in found.agreement if one.kind == "shap" and not one.own} == {"cannot be told"}
    assert "? Undecided: by SHAP, 2 splits cannot show whether all 3 pairs rank the features" in write_answer(found)
    assert " (tau 1.00; with themselves 1.00). At least 3 splits are needed (--seeds)." in write_answer(found)


def judged(low, high, first, second, n=5):
    """The reading of a pair with such an interval, between libraries that agree so far with themselves."""
    tau = None if low is None else (low + high) / 2
    pairs = [
        PairAgreement(kind="gain", a="a", b="b", n=n, tau=tau, low=low, high=high),
        PairAgreement(kind="gain", a="a", b="a", n=10, tau=first),
        PairAgreement(kind="gain", a="b", b="b", n=10, tau=second),
    ]
    return add_readings(pairs)[0].reading


@pytest.mark.parametrize(
    ("low", "high", "reading"),
    [
        (0.75, 0.95, "as much"),
        (0.8001 - MARGIN, 1.0, "as much"),  # not below 0.8 by more than the margin
        (0.7999 - MARGIN, 1.0, "cannot be told"),
        (0.2, 1.0, "cannot be told"),
        (0.2, 0.79, "less"),
        (0.75, 0.79, "less"),  # by little, but surely
        (0.2, 0.8, "cannot be told"),
    ],
)
def test_both_verdicts_need_evidence(low, high, reading):
    assert judged(low, high, 0.8, 0.9) == judged(low, high, 0.9, 0.8) == reading
    assert judged(low, high, 0.8, 0.9, n=2) == "cannot be told"


def test_without_anything_to_hold_a_pair_against_there_is_no_reading():
    assert judged(0.9, 1.0, None, 0.9) == judged(None, None, 0.9, 0.9) == ""


@given(
    low=st.floats(-1, 1),
    width=st.floats(0, 2),
    wider=st.floats(0, 1),
    own=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_a_wider_interval_never_gives_the_opposite_verdict_or_more_certainty(low, width, wider, own):
    narrow, wide = judged(low, low + width, *own), judged(low - wider, low + width + wider, *own)
    assert wide in (narrow, "cannot be told") or ((narrow, wide) == ("less", "as much") and wider <= MARGIN)


def test_libraries_that_differ_more_than_seeds_do_are_named(tmp_path):
    cells = Cells(tmp_path)
    other = Cells(tmp_path, weights=[0.5, 2.0, 3.0, 0.0, 1.0])
    run = cells.run(
        *(cells.cell("alpha", seed, spread=0.01) for seed in range(1, 7)),
        *(other.cell("beta", seed, spread=0.01) for seed in range(1, 7)),
    )
    (found,) = read_findings(run)
    assert pair(found, "shap", "alpha", "beta").reading == "less"
    assert (
        "alpha and beta rank the features less alike than each does with itself over seeds: alpha and beta (tau "
        in (tell_reading(found, "shap"))
    )
    assert write_answer(found).startswith("Do they agree for the same reasons? No: by SHAP")


def test_each_group_of_pairs_has_its_own_range_of_tau(tmp_path):
    names = tuple("abcdefghij")
    alike, other = (Cells(tmp_path, names=names, weights=w) for w in (np.linspace(1, 10, 10), np.linspace(10, 1, 10)))
    run = alike.run(
        *(alike.cell(name, seed, spread=0.01) for name in ("alpha", "beta") for seed in range(1, 7)),
        *(other.cell("delta", seed, spread=0.01) for seed in range(1, 7)),
    )
    (found,) = read_findings(run)
    assert tell_reading(found, "gain") == (
        "by gain, 2 of 3 pairs rank the features less alike than each does with itself over seeds (tau -1.00):"
        " alpha and delta (tau -1.00 against 1.00 and 1.00), beta and delta (tau -1.00 against 1.00 and 1.00);"
        " 1 of 3 pairs ranks the features as much alike as each does with itself over seeds, or more (tau 1.00);"
        " with themselves, tau 1.00."
    )


def test_one_split_has_nothing_to_be_held_against(cells):
    (found,) = read_findings(cells.grid(seeds=1))
    assert "there is only one split" in write_answer(found)
    assert pair(found, "gain", "alpha", "alpha").reason == "only one split"


def test_one_library_cannot_agree_and_says_so(cells):
    (found,) = read_findings(cells.grid(("alpha",)))
    assert write_answer(found).endswith("No answer: only one library was measured.")


def test_why_no_two_libraries_can_be_compared_is_said_as_it_is(cells):
    said = "Do they agree for the same reasons? No answer: no two libraries have values that can be compared:"
    none = {"gain": MeasuredKind(reason="it keeps none")}
    gain = {"gain": cells.cell().kinds["gain"]}
    (found,) = read_findings(cells.run(cells.cell("alpha", kinds=none), cells.cell("beta", kinds=gain)))
    assert write_answer(found) == f"{said} by gain, alpha has none."
    shap = {"shap": cells.cell().kinds["shap"]}
    broken = cells.cell("beta", off=7.0)
    (found,) = read_findings(
        cells.run(cells.cell("alpha", kinds=shap), broken.model_copy(update={"kinds": {"shap": broken.kinds["shap"]}}))
    )
    assert write_answer(found) == f"{said} by SHAP, beta fails a check."
    both = broken.model_copy(update={"kinds": {**none, "shap": broken.kinds["shap"]}})
    (found,) = read_findings(
        cells.run(cells.cell("alpha", kinds={**none, **shap}), both, both.model_copy(update={"library": "gamma"}))
    )
    assert write_answer(found) == f"{said} by SHAP, beta, gamma fail a check; by gain, alpha, beta, gamma have none."


def test_where_no_importance_was_measured_the_answer_has_the_reason(cells):
    document = cells.run(cells.cell("alpha", kinds={"gain": MeasuredKind(reason="it keeps none")}, raw=None)).to_model()
    assert document.answer[0] == (
        "Do they agree for the same reasons? No answer: no importance was measured. alpha has no gain"
        " importance: it keeps none."
    )


def test_what_was_not_checked_is_not_said_to_hold(cells):
    none = {"gain": MeasuredKind(reason="it keeps none")}
    bare = {"kinds": none, "raw": None, "probe": None, "interactions": None}
    assert cells.run(cells.cell("alpha", **bare)).to_model().tables[0].answer == ("Nothing could be checked.",)
    both = cells.run(cells.cell("alpha", **bare), cells.cell("beta")).to_model()
    assert both.tables[0].answer == ("beta: no check fails.",)


def test_a_model_that_uses_nothing_has_no_agreement(tmp_path):
    cells = Cells(tmp_path, weights=np.zeros(5))
    (found,) = read_findings(cells.grid(("alpha", "beta"), seeds=3))
    one = pair(found, "gain", "alpha", "beta")
    assert (one.tau, one.overlap, one.reason) == (None, None, "all features equally important")
    assert pair(found, "shap", "alpha", "beta").cosine is None
    assert pair(found, "predictions", "alpha", "beta").reason == "constant predictions"
    assert "not defined (all features equally important)" in tell_reading(found, "shap")


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_features_have_no_ranking_to_agree_on(tmp_path, count):
    cells = Cells(tmp_path, names=NAMES[:count], weights=WEIGHTS[:count])
    (found,) = read_findings(cells.grid(("alpha", "beta"), seeds=3))
    one = pair(found, "gain", "alpha", "beta")
    assert (one.tau, one.reason) == (None, "fewer than three features")
    assert f"A ranking of {count} features can hardly differ" in found.notes[0]


def test_the_top_is_at_most_half_of_the_features():
    assert [count_top(10, count) for count in (50, 8, 5, 2, 1)] == [10, 4, 2, 1, 1]


def test_rows_of_most_disagreement_have_their_number_and_values(tmp_path):
    x = features()
    cells, n = Cells(tmp_path, x=x), 400
    assert len(x) == n
    run = cells.run(cells.cell("alpha", 1, own=0.5), cells.cell("beta", 1, own=0.5))
    (found,) = read_findings(run)
    rows = [row for row in found.disputed if row.by == "predictions"]
    assert [row.difference for row in rows] == sorted((row.difference for row in rows), reverse=True)
    first = rows[0]
    assert first.values["income"] == pytest.approx(float(x[first.row, 0]))
    shown = first.predictions
    assert abs(shown["alpha"][0] - shown["beta"][0]) == pytest.approx(first.difference)
    assert pair(found, "predictions", "alpha", "beta").row == first.row
    assert set(first.attributions) == {"alpha", "beta"}


def rows_table(run):
    """The rows of most disagreement by predictions, as a list of dicts by heading."""
    (section,) = [one for one in run.document().sections if one.anchor == "rows" and one.only == "text"]
    table = next(block for block in section.blocks if isinstance(block, PlainTable))
    return [dict(zip(table.headings, row, strict=True)) for row in table.rows]


def test_values_of_rows_are_shown_as_the_data_has_them(tmp_path):
    x = features()
    x[:, 0], x[:, 1], x[:, 2], x[:, 4] = 105117 + np.arange(400), np.arange(400) % 3, 0.1, np.nan
    cells = Cells(tmp_path, x=x, weights=[1e-3, 1.0, 0.5, 0.1, 2.0], categorical=(1,), task=Task.BINARY)
    named = {
        "category_names": save_array(tmp_path, np.frombuffer(b'{"age": ["young", "old", "none"]}', dtype=np.uint8)),
        "y": save_array(tmp_path, np.arange(120) % 2 * 1.0),
    }
    run = cells.run(*(cells.cell(name, 1, own=0.5, **named) for name in ("alpha", "beta")))
    (found,) = read_findings(run)
    for row, shown in zip(found.disputed, rows_table(run), strict=False):
        assert row.values["age"] == ("young", "old", "none")[row.row % 3]
        assert row.values["rooms"] == 0.1
        assert shown["Target"] in ("0", "1")
        values = dict(value.split(" ") for value in shown["Values"].split(", "))
        assert values["income"] == str(105117 + row.row)
        assert (values["age"], values["rooms"], values["latitude"]) == (row.values["age"], "0.1", MISSING)


def folds_of(run):
    """The folded rows of the page by predictions: the cells of each by feature."""
    (section,) = [one for one in run.document().sections if one.anchor == "rows" and one.only == "page"]
    folds = [block.blocks[0] for block in section.blocks if isinstance(block, Details)]
    return [{row[0]: row[1:] for row in table.rows} for table in folds]


def test_what_matters_to_one_library_is_shown_of_every_library(tmp_path):
    names = tuple("abcdefghij")
    one, other = (Cells(tmp_path, names=names, weights=w) for w in (np.r_[5:10, [0.01] * 5], np.r_[[0.01] * 5, 5:10]))
    run = one.run(one.cell("alpha", 1, spread=0), other.cell("beta", 1, spread=0))
    (found,) = read_findings(run)
    for row in found.disputed:
        assert list(row.attributions["alpha"]) == list(row.attributions["beta"])
        assert set(row.attributions["alpha"]) == set(names)
    for fold in folds_of(run):
        assert all(isinstance(value, float) for _, *values in fold.values() for value in values)
    for shown in rows_table(run):
        alpha, beta = (part.partition(": ")[2] for part in shown["Largest attributions"].split("; "))
        assert [part.split()[0] for part in alpha.split(", ")] == [part.split()[0] for part in beta.split(", ")]


def test_a_feature_that_matters_to_no_library_has_its_value_alone(tmp_path):
    names = tuple("abcdefgh")
    cells = Cells(tmp_path, names=names, weights=np.r_[4:9, [0.0] * 3])
    fold = folds_of(cells.run(*(cells.cell(name, 1, own=0.5) for name in ("alpha", "beta"))))[0]
    assert set(fold) == set(names)
    assert fold["h"][1:] == ("", "")


def test_a_group_has_the_values_of_its_columns(tmp_path):
    units = (*(FeatureUnit(name=NAMES[i], columns=(i,)) for i in (1, 2, 3)), FeatureUnit(name="place", columns=(0, 4)))
    cells = Cells(tmp_path, x=np.round(features(), 1), units=units)
    kinds = {"shap": cells.cell().kinds["shap"]}
    for changes in ({"kinds": kinds}, {"kinds": {"gain": cells.cell().kinds["gain"]}, "raw": None}):
        run = cells.run(*(cells.cell(name, 1, own=0.5, **changes) for name in ("alpha", "beta")))
        (found,) = read_findings(run)
        assert found.groups == {"place": ("income", "latitude")}
        first = next(row for row in found.disputed if row.by == "predictions")
        place = f"income {first.values['income']:g}, latitude {first.values['latitude']:g}"
        fold = folds_of(run)[0]
        assert fold["place"][0] == place
        assert set(fold) == {"age", "rooms", "noise", "place"}
        assert place in rows_table(run)[0]["Values"]


def test_a_run_without_names_of_categories_has_their_codes(tmp_path):
    cells = Cells(tmp_path, x=np.floor(features() * 3), categorical=(1,))
    run = cells.run(*(cells.cell(name, 1, own=0.5) for name in ("alpha", "beta")))
    first = run.results[0]
    assert Explanation.model_validate(first.model_dump(exclude={"category_names"})) == first
    assert {type(row.values["age"]) for row in read_findings(run)[0].disputed} == {float}


def test_a_library_is_compared_with_itself_in_rows_that_two_seeds_measured(cells):
    (found,) = read_findings(cells.grid(("alpha", "beta"), seeds=3))
    own = pair(found, "shap", "alpha", "alpha")
    assert 0 < own.distance < 0.2
    assert pair(found, "predictions", "alpha", "alpha").correlation > 0.9


def test_too_few_common_rows_are_said(tmp_path):
    (found,) = read_findings(Cells(tmp_path, n=15).grid(("alpha", "beta"), seeds=2))
    assert pair(found, "predictions", "alpha", "alpha").reason == "fewer than 20 rows in common"


def test_columns_that_belong_together_are_one_feature(tmp_path):
    units = (FeatureUnit(name="place", columns=(0, 4)), *(FeatureUnit(name=NAMES[i], columns=(i,)) for i in (1, 2, 3)))
    cells = Cells(tmp_path)
    run = cells.run(
        *(cells.cell(name, 1, units=units, kinds={"gain": cells.cell(name, 1).kinds["gain"]}) for name in ("a", "bb"))
    )
    (found,) = read_findings(run)
    assert {one.feature for one in found.importances} == {"place", "age", "rooms", "noise"}
    assert "Columns that belong together are ranked as one: place." in found.notes


def test_several_outputs_are_added_up_by_size(tmp_path):
    (found,) = read_findings(Cells(tmp_path, outputs=3).grid(("alpha", "beta"), seeds=2))
    income = next(one for one in found.importances if (one.kind, one.feature) == ("shap", "income"))
    assert income.rank == 1
    assert min(value for one in found.swarm for value in one.attributions["alpha"]) >= 0


@pytest.fixture
def classes(tmp_path):
    """Libraries that predict three classes, each one's probabilities of its own."""
    cells = Cells(tmp_path, outputs=3, task=Task.MULTICLASS)

    def cell(name, seed):
        likely = np.random.default_rng([len(name), seed]).dirichlet(np.ones(3), 120)
        target = save_array(tmp_path, np.arange(120) % 3 * 1.0)
        return cells.cell(name, seed, own=0.5, predictions=save_array(tmp_path, likely), y=target)

    return cells.run(*(cell(name, seed) for name in ("alpha", "beta", "gamma_") for seed in (1, 2)))


@pytest.mark.parametrize(("by", "kind"), [("predictions", "predictions"), ("attributions", "shap")])
def test_the_difference_of_a_row_is_that_of_the_tables(classes, by, kind):
    (found,) = read_findings(classes)
    first = next(row for row in found.disputed if row.by == by)
    largest = max((one for one in found.agreement if one.kind == kind and not one.own), key=lambda one: one.largest)
    assert (first.difference, first.row) == (largest.largest, largest.row)


def test_the_difference_and_the_attributions_of_a_row_are_of_one_class(classes):
    (found,) = read_findings(classes)
    for row in found.disputed:
        if row.by == "predictions":
            of_class = [values[row.output] for values in row.predictions.values()]
            assert max(of_class) - min(of_class) == row.difference
        cell = next(one for one in classes.results if one.library == "alpha" and one.seed == row.seed)
        place = classes.array(cell.rows).tolist().index(row.row)
        income = classes.measured(cell, "shap")[place, 0, row.output]
        assert row.attributions["alpha"].get("income", income) == income


def test_of_classes_the_predicted_one_is_shown_with_its_probability(classes):
    document = classes.to_model()
    (found,) = document.findings
    rows = [row for row in found.disputed if row.by == "predictions"]
    for row, shown in zip(rows, rows_table(classes), strict=True):
        likely = max(row.predictions["alpha"])
        assert shown["alpha"] == f"{row.predictions['alpha'].index(likely)} ({likely:.2f})"
        assert shown["Of"] == f"class {row.output}"
        assert shown["Target"] in ("0", "1", "2")
    text = document.render("markdown")
    assert (
        "The difference is that of the probability of one class, named beside it; attributions are to the same class."
        in text
    )
    assert "Shown of each library: the class that it predicts, with its probability." in text
    assert "Attributions to the raw scores of all 3 classes are added up by size." in text
    assert "The largest difference is that of the probability of one class." in text
    page = document.render("html")
    assert "size of attributions, summed over 3 classes" in page
    assert f"largest attributions to class {rows[0].output}" in page
    assert "attribution to the raw score<" not in page


def test_of_two_classes_the_probability_is_that_of_class_1(tmp_path):
    cells = Cells(tmp_path, task=Task.BINARY)
    text = cells.run(*(cells.cell(name, own=0.5) for name in ("alpha", "beta"))).to_model().render("markdown")
    assert "Shown of each library: the probability of class 1." in text
    assert "| Of " not in text


def test_shares_are_of_the_sum_and_ranks_start_at_one(cells):
    (found,) = read_findings(cells.grid(("alpha",)))
    shares = [one.share for one in found.importances if one.kind == "gain"]
    assert sum(shares) == pytest.approx(1)
    assert sorted(one.rank for one in found.importances if one.kind == "gain") == [1, 2, 3, 4, 5]
    permutation = [one for one in found.importances if one.kind == "permutation"]
    assert {one.share for one in permutation} == {None}


def test_the_interval_of_a_share_holds_nothing_that_is_no_share(cells):
    (found,) = read_findings(cells.grid(("alpha",), seeds=3, spread=3.0))
    shares = [one for one in found.importances if one.kind != "permutation"]
    assert all(0 <= one.low <= one.high <= 1 for one in shares)
    assert {0.0, 1.0} & {bound for one in shares for bound in (one.low, one.high)}
    assert min(one.low for one in found.importances if one.kind == "permutation") < 0


def test_kinds_that_are_not_offered_and_samples_are_told(cells):
    kinds = {**cells.cell().kinds, "gain": MeasuredKind(reason="it keeps none")}
    told = "measured on 120 of the 5000 validation rows, the same for every library"
    run = cells.run(cells.cell("alpha", kinds=kinds, sampled=told), cells.cell("beta"), errors=[error("toy/gbdt")])
    (found,) = read_findings(run)
    assert found.not_offered == {"alpha": {"gain": "it keeps none"}}
    assert found.notes == ("Measured on 120 of the 5000 validation rows, the same for every library.",)
    document = run.to_model()
    (told,) = [table for table in document.tables if "alpha has no gain importance: it keeps none." in table.notes]
    assert told.keys["kind"] == "gain"
    assert "boosters: 1 of 1 cells failed (WorkerDied: killed by SIGSEGV)." in document.answer
    assert found.notes[0] in document.notes


def test_without_attributions_nothing_is_said_of_them(tmp_path):
    cells = Cells(tmp_path, outputs=3)
    gains = [
        cells.cell(name, 1, kinds={"gain": cells.cell(name, 1).kinds["gain"]}, raw=None, interactions=None, probe=None)
        for name in ("alpha", "beta")
    ]
    document = cells.run(*gains).to_model()
    (section,) = [one for one in document.document().sections if one.anchor == "rows" and one.only == "text"]
    told = " ".join(block.text for block in section.blocks if hasattr(block, "text"))
    assert "attributions" not in told
    assert all("Largest attributions" not in block.headings for block in section.blocks if hasattr(block, "headings"))
    assert not any("Sums count as right" in note for note in document.notes)


def test_the_table_of_checks_names_those_that_it_speaks_of(cells):
    failed = cells.run(cells.cell("alpha"), cells.cell("beta"), errors=[error("toy/gbdt", "gamma")]).to_model()
    assert failed.tables[0].answer == ("alpha, beta: no check fails.",)
    broken = cells.run(cells.cell("alpha"), cells.cell("beta", off=7.0)).to_model()
    assert broken.tables[0].answer == ("beta: what fails a check is not used for agreement.",)


def test_a_kind_that_no_library_offers_has_its_reasons_in_the_notes(cells):
    kinds = {"gain": MeasuredKind(reason="it keeps none")}
    document = cells.run(cells.cell("alpha", kinds=kinds, raw=None)).to_model()
    assert "alpha has no gain importance: it keeps none." in document.notes
