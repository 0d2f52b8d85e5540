"""The audit of a table: each kind of finding where it belongs, and silence where it does not."""

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.datasets import DATASETS, Table, auditing, materialize, open_stored
from boosters_eval.datasets.audit_columns import SAMPLE, note_numbers_as_text
from boosters_eval.datasets.audit_relations import LEAK_AUC, LEAK_R2, AuditTarget, score_alone
from boosters_eval.datasets.auditing import audit_frame, audit_table, name_touched
from boosters_eval.datasets.checks import is_text
from boosters_eval.datasets.config import KINDS, NOTED, ROW_ORDER, AuditedColumn, DataAudit, SplitBy
from boosters_eval.metrics.task import Task
from factories import dataset


def a_frame(rows=200, seed=1, **columns):
    """Columns in which there is nothing to find, and others; the target is `y`."""
    rng = np.random.default_rng(seed)
    usual = {
        "height": rng.standard_normal(rows),
        "weight": rng.standard_normal(rows),
        "color": rng.choice(["red", "green", "blue"], rows),
    }
    made = {name: make(rng, rows) if callable(make) else make for name, make in columns.items()}
    target = {} if "y" in columns else {"y": usual["height"] + rng.standard_normal(rows)}
    return pd.DataFrame({**usual, **target, **made})


def role_of(column):
    if column.dtype.kind in "mM":
        return "date"
    return "categorical" if is_text(column) else "numeric"


def audited(frame, task=Task.REGRESSION, columns=(), **options):
    """The audit of a frame whose columns are used as their types say, but for those that are told."""
    told = {column.name: column for column in columns}
    roles = [told.get(name) or AuditedColumn(name=name, role=role_of(frame[name])) for name in frame.columns]
    return audit_frame(frame, "y", task, roles, **options)


def kinds(audit):
    return [(finding.kind, finding.column) for finding in audit.findings]


def only(audit):
    (finding,) = audit.findings
    return finding


def classes(share):
    return lambda rng, rows: (rng.random(rows) < share).astype(int)


def shuffled(rng, rows):
    return rng.permutation(rows) + 100


def test_nothing_is_found_in_a_plain_table():
    audit = audited(a_frame(), name="plain", reason="200 distinct values")
    assert audit.findings == ()
    assert audit.by_role() == {"target": ["y"], "numeric": ["height", "weight"], "categorical": ["color"]}
    assert (audit.rows, audit.n_columns, audit.sampled) == (200, 3, None)
    assert str(audit) == ("plain: regression (200 distinct values), 200 rows, 3 columns (2 numeric, 1 categorical)")
    assert repr(audit) == "DataAudit('plain', 200 rows: nothing suspicious)"


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("Unnamed: 0", lambda _, n: np.arange(n), "counts the rows: each value is the one before + 1"),
        ("nr", lambda _, n: np.arange(n)[::-1] * 10, "counts the rows: each value is the one before - 10"),
        ("a", lambda rng, n: np.cumsum(rng.integers(1, 9, n)), "never repeats and rises from row to row"),
        ("a", shuffled, "numbers the rows in another order: 200 distinct whole numbers from 100 to 299"),
        ("customer_id", lambda rng, n: rng.integers(0, 10**7, n), "is named like an id and has 200 distinct values"),
        ("key", lambda rng, n: rng.integers(10**18, 9 * 10**18, n), "holds whole numbers of up to 19 digits"),
        ("key", lambda _, n: 1234567890123456789 + np.arange(n), "holds whole numbers of up to 19 digits"),
        ("name", lambda _, n: [f"person {i}" for i in range(n)], "has 200 distinct texts in 200 rows"),
    ],
)
def test_an_id_is_said(name, values, said):
    audit = audited(a_frame(**{name: values}))
    finding = only(audit)
    assert (finding.kind, finding.column) == ("id", name)
    assert said in finding.text
    assert finding.option == ("--drop 'Unnamed: 0'" if " " in name else f"--drop {name}")
    assert audit.by_role()["id"] == [name]
    assert next(column for column in audit.columns if column.name == name).used


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("salary", lambda rng, n: rng.permutation(90_000)[:n]),  # all distinct, but they are quantities
        ("measured", lambda _, n: np.linspace(0.1, 1, n)),
        ("customer_id", lambda rng, n: rng.integers(0, 20, n)),  # many rows each: a category
        ("population", lambda rng, n: rng.integers(0, 10**12, n)),
        ("surname", lambda rng, n: rng.choice([f"name {i}" for i in range(30)], n)),
        ("flag", lambda rng, n: rng.random(n) < 0.5),
    ],
)
def test_a_quantity_or_a_category_is_no_id(name, values):
    assert audited(a_frame(**{name: values})).findings == ()


def test_a_column_that_the_user_asked_for_or_left_out_is_not_questioned():
    frame = a_frame(id=lambda _, n: np.arange(n), c=1)
    assert kinds(audited(frame)) == [("id", "id"), ("constant", "c")]
    assert audited(frame, asked=["id", "c"]).findings == ()
    columns = [AuditedColumn(name=name, role="dropped", used=False) for name in ("id", "c")]
    audit = audited(frame, columns=columns)
    assert audit.findings == ()
    assert audit.by_role()["dropped"] == ["id", "c"]


AFFAIRS = np.where(np.arange(200) % 3 == 0, np.arange(200) % 12 + 1, 0)
CLASSES = np.array(list("abc"))


@pytest.mark.parametrize(
    ("task", "columns", "score"),
    [
        (Task.BINARY, {"leak": AFFAIRS, "y": AFFAIRS > 0}, "AUC 1.0000"),
        (Task.BINARY, {"leak": np.where(AFFAIRS > 0, np.nan, 1.0), "y": AFFAIRS > 0}, "AUC 1.0000"),
        (Task.BINARY, {"leak": np.where(AFFAIRS > 0, "yes", "no"), "y": AFFAIRS > 0}, "AUC 1.0000"),
        (Task.MULTICLASS, {"leak": AFFAIRS % 3 + 0.5, "y": CLASSES[AFFAIRS % 3]}, "AUC 1.0000"),
        (Task.REGRESSION, {"leak": AFFAIRS * 2.0, "y": AFFAIRS / 7}, "R² of the ranks 1.0000"),
        (
            Task.REGRESSION,
            {"leak": np.exp(np.arange(200) % 50), "y": np.arange(200) % 50 / 7},
            "R² of the ranks 1.0000",
        ),
    ],
)
def test_a_column_that_alone_predicts_the_target_is_said(task, columns, score):
    found = [finding for finding in audited(a_frame(**columns), task).findings if finding.kind == "leak"]
    assert [(finding.column, finding.severe) for finding in found] == [("leak", True)]
    assert found[0].text == f"'leak' alone predicts 'y': {score}, out of sample"
    assert found[0].option.startswith("--drop leak")


def test_a_rare_class_is_no_reason_to_miss_a_leak():
    rng = np.random.default_rng(3)
    y = np.zeros(60_000)
    y[rng.permutation(60_000)[:12]] = 1
    frame = pd.DataFrame({"noise": rng.standard_normal(60_000), "leak": y * 3 + rng.random(60_000), "y": y})
    assert kinds(audited(frame, Task.BINARY)) == [("leak", "leak"), ("imbalance", None)]


@pytest.mark.parametrize("rows", [30, 60, 300])
@pytest.mark.parametrize("target", ["number", "two", "rare", "three"])
def test_random_columns_predict_nothing(rows, target):
    """At most one of some hundred random columns for each size and kind of target, of which none is expected."""
    rng = np.random.default_rng(rows)
    hits = 0
    for _ in range(4):
        y = {
            "number": rng.standard_normal(rows),
            "two": rng.integers(0, 2, rows).astype(float),
            "rare": (rng.permutation(rows) < 5).astype(float),
            "three": rng.integers(0, 3, rows).astype(float),
        }[target]
        known = AuditTarget(y, classes=target != "number")
        bound = LEAK_AUC if known.classes else LEAK_R2
        for _ in range(10):
            number, level = rng.standard_normal(rows), rng.integers(0, rows // 2, rows).astype(float)
            hits += score_alone(number, known, bound, categorical=False) is not None
            hits += score_alone(level, known, bound, categorical=True) is not None
            hits += score_alone(level % 4, known, bound, categorical=False) is not None
    assert hits == 0


def test_a_column_that_predicts_well_is_no_leak():
    rng = np.random.default_rng(2)
    y = rng.standard_normal(500)
    frame = pd.DataFrame({"good": y + 0.3 * rng.standard_normal(500), "level": np.floor(y), "y": y})
    assert audited(frame).findings == ()
    frame["y"] = (y > 0).astype(int)
    assert kinds(audited(frame.drop(columns="level"), Task.BINARY)) == []


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"cm": lambda rng, n: rng.standard_normal(n), "inch": None}, "their correlation is -1.00000"),
        ({"cm": lambda rng, n: rng.choice(list("abcdef"), n), "inch": None}, "each value of one goes with one value"),
    ],
)
def test_a_column_that_says_the_same_as_another_is_said_once(columns, said):
    frame = a_frame(**columns)
    frame["inch"] = frame["cm"] / -2.54 if frame["cm"].dtype.kind == "f" else frame["cm"].map("abcdef".index)
    finding = only(audited(frame))
    assert (finding.kind, finding.column, finding.option) == ("duplicate-columns", "inch", "--drop inch")
    assert said in finding.text


def test_numbers_beyond_what_a_model_sees_are_missing():
    frame = a_frame()
    frame.loc[:3, "height"] = [1e300, -1e300, np.inf, 1e39]
    assert audited(frame).findings == ()


def test_columns_that_go_together_are_not_the_same():
    rng = np.random.default_rng(5)
    cm = rng.standard_normal(400)
    frame = a_frame(400, cm=cm, kg=cm + 0.1 * rng.standard_normal(400), size=np.where(cm > 0, "large", "small"))
    assert audited(frame).findings == ()


def test_what_rises_with_an_id_is_not_to_be_dropped_for_it():
    audit = audited(
        a_frame(**{"Unnamed: 0": np.arange(200), "year": 1800 + np.arange(200), "long": np.arange(200) / 7})
    )
    assert ("id", "Unnamed: 0") in kinds(audit)
    assert ("duplicate-columns", "long") in kinds(audit)  # but as a copy of the year
    assert all(finding.column != "year" for finding in audit.findings if finding.kind == "duplicate-columns")


def test_a_quantity_that_grows_with_time_is_no_id():
    grown = {
        "date": pd.date_range("2000", periods=200).astype(str),
        "people": lambda r, n: np.cumsum(r.integers(1, 9, n)),
    }
    assert kinds(audited(a_frame(**grown))) == [("date", "date"), ("time-order", "date")]
    numbered = a_frame(**grown, order_id=lambda r, n: np.cumsum(r.integers(1, 9, n)), row=np.arange(200))
    assert {("id", "order_id"), ("id", "row")} <= set(kinds(audited(numbered)))


def test_texts_that_a_sample_hardly_meets_twice_are_no_ids():
    rng = np.random.default_rng(9)
    rows = 10 * SAMPLE
    texts = np.array([f"u{i}" for i in range(rows // 2)])
    frame = pd.DataFrame({"x": rng.standard_normal(rows), "y": rng.standard_normal(rows)})
    twice = frame.assign(user=rng.permutation(np.concatenate([texts, texts])))
    assert kinds(audited(twice)) == [("many-categories", "user")]
    once = frame.assign(user=[f"u{i}" for i in range(rows)])
    assert kinds(audited(once)) == [("id", "user")]


def test_the_columns_of_a_large_table_are_never_sorted_as_a_whole(monkeypatch):
    rng = np.random.default_rng(9)
    rows = 5 * SAMPLE
    keys = rng.integers(10**18, 9 * 10**18, rows)
    frame = pd.DataFrame({"key": keys, "nr": rng.permutation(rows), "y": rng.standard_normal(rows)})
    sorted_rows = []
    unique = np.unique

    def counting(values, *args, **options):
        sorted_rows.append(len(values))
        return unique(values, *args, **options)

    monkeypatch.setattr(np, "unique", counting)
    assert kinds(audited(frame)) == [("id", "key"), ("id", "nr")]
    assert max(sorted_rows) < 2 * SAMPLE


def test_an_option_has_the_whole_name_as_it_is_typed():
    long = "x" * 300
    audit = audited(a_frame(**{long: 3.0, "--drop": 4.0, "it's": 5.0}))
    assert [finding.option for finding in audit.findings] == [
        f"--drop {long}",
        "--drop=--drop",
        """--drop 'it'"'"'s'""",
    ]
    several = audited(a_frame(**{"-a": 3.0, "b c": 4.0, "c": 5.0, "d": 6.0}))
    assert only(several).option == "--drop 'b c' c d --drop=-a"


def test_copies_of_rows_are_counted_with_and_without_the_target_whatever_their_ids():
    frame = a_frame(200)
    frame.loc[180:189] = frame.loc[0:9].to_numpy()
    frame.loc[190:199, ["height", "weight", "color"]] = frame.loc[0:9, ["height", "weight", "color"]].to_numpy()
    frame = frame.astype({"height": float, "weight": float, "y": float})
    finding = only(audited(frame))
    assert (finding.kind, finding.severe) == ("duplicate-rows", True)
    assert (
        "10 of 200 rows (5.0 %) repeat an earlier row,"
        " and 10 more (5.0 %) differ from an earlier row only in the target: " in finding.text
    )
    whole = only(audited(pd.concat([frame[:180], frame[:10]])))
    assert whole.text.startswith("10 of 190 rows (5.3 %) repeat an earlier row: ")
    changed = only(audited(pd.concat([frame[:180], frame[:10].assign(y=7.5)])))
    assert changed.text.startswith("10 of 190 rows (5.3 %) differ from an earlier row only in the target: ")
    assert kinds(audited(frame.assign(id=np.arange(200)))) == [("duplicate-rows", None), ("id", "id")]


def test_a_few_copies_are_no_matter():
    frame = a_frame(200)
    assert audited(pd.concat([frame, frame.iloc[:4]])).findings == ()  # fewer than five
    frame = a_frame(900)
    assert audited(pd.concat([frame, frame.iloc[:6]])).findings == ()  # less than one per cent
    assert audited(pd.concat([frame, frame.iloc[:30].assign(y=0.5)])).findings == ()  # with another target


def test_rows_repeat_by_chance_where_few_are_possible():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 500), "b": rng.choice(list("xyz"), 500), "y": rng.random(500)})
    assert audited(frame).findings == ()


@pytest.mark.parametrize(
    ("column", "kind", "said"),
    [
        (7, "constant", "'c' is always 7"),
        ("same", "constant", "'c' is always 'same'"),
        (np.nan, "missing", "'c' has no value at all"),
        (None, "missing", "'c' has no value at all"),
        ([1.0] + [np.nan] * 199, "missing", "'c' is missing in 99.5 % of the rows"),
    ],
)
def test_a_column_that_says_nothing_is_said(column, kind, said):
    finding = only(audited(a_frame(c=column)))
    assert (finding.kind, finding.text) == (kind, said)


def test_an_almost_constant_column_needs_many_rows():
    hardly = lambda _, n: np.arange(n) == 5  # noqa: E731
    assert kinds(audited(a_frame(2_000, c=hardly))) == [("almost-constant", "c")]
    assert audited(a_frame(500, c=hardly)).findings == ()


def test_many_columns_of_a_kind_are_one_finding():
    finding = only(audited(a_frame(**{f"c{i}": i for i in range(20)})))
    assert finding.text.startswith("20 columns: 'c0', 'c1', 'c2', 'c3', 'c4', 'c5' and 14 more; 'c0' is always 0")
    assert finding.option.startswith("--drop c0 c1 c2")
    assert finding.option.endswith(" c19")


@pytest.mark.parametrize(
    ("texts", "number"),
    [
        (["$3750", "$12", "$1,200.50"], True),
        (["1,000", "12,500", "7"], True),
        (["3,5", "10,25", "-0,5"], True),
        (["12 %", "7%", "0.5%"], True),
        (["€ 12", "1.000 €"], True),
        ([str(i / 4) for i in range(40)], True),
        (["1", "2", "3"], False),  # grades
        (["007", "010", "099"], False),  # codes
        (["1-2", "3-4"], False),
        (["12:30", "08:15"], False),
        (["red", "green", "7"], False),
        (["v1.2", "v1.3"], False),
        ([], False),
    ],
)
def test_numbers_written_as_text_are_known_from_other_texts(texts, number):
    assert bool(note_numbers_as_text(texts)) is number


def test_numbers_as_text_are_said_unless_they_are_declared_categories():
    frame = a_frame(price=lambda rng, n: [f"${value},000" for value in rng.integers(1, 99, n)])
    finding = only(audited(frame))
    assert (finding.kind, finding.column, finding.option) == ("number-as-text", "price", "--numeric price")
    assert audited(frame.astype({"price": "category"})).findings == ()


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S", "%b %d, %Y", "%d-%b-%y", "number"]
)
def test_dates_are_said(form):
    days = pd.date_range("2020-01-30", periods=200, freq="31h")
    texts = days.strftime("%Y%m%d").astype(int) if form == "number" else days.strftime(form)
    frame = a_frame(day=lambda rng, n: texts.to_numpy()[rng.permutation(n)])
    finding = only(audited(frame))
    assert (finding.kind, finding.column, finding.option) == ("date", "day", "--date day")
    assert audited(frame, columns=[AuditedColumn(name="day", role="date")]).findings == ()


def test_a_day_of_the_month_is_no_order_of_time():
    days = pd.date_range("2013", periods=365).repeat(9)
    frame = a_frame(len(days), day=days.day, month=days.month, arrival_week=days.isocalendar().week.to_numpy())
    assert kinds(audited(frame)) == []
    assert kinds(audited(a_frame(200, day=np.arange(200) // 2))) == [("time-order", "day")]  # since a start


def test_rows_in_the_order_of_time_are_a_hint_to_another_split():
    days = pd.date_range("2020-01-30", periods=200, freq="31h")
    for column in (days, days.tz_localize("UTC"), days.strftime("%Y-%m-%d %H:%M")):
        roles = [AuditedColumn(name="day", role="date")]
        finding = only(audited(a_frame(day=column), columns=roles))
        assert (finding.kind, finding.column, finding.option) == ("time-order", "day", "--split time:day")
    assert kinds(audited(a_frame(year=np.arange(200) // 4 + 1950))) == [("time-order", "year")]
    assert audited(a_frame(day=lambda rng, n: days.to_numpy()[rng.permutation(n)])).findings == ()


def test_rare_classes_and_one_that_is_nearly_all_are_said():
    labels = ["common"] * 1990 + ["odd"] * 9 + ["once"]
    audit = audited(a_frame(2_000, y=labels), Task.MULTICLASS)
    assert kinds(audit) == [("rare-class", None), ("imbalance", None)]
    assert "2 of 3 classes have fewer than 10 rows: 'once' 1, 'odd' 9" in audit.findings[0].text
    assert "99.50 % of the rows are of class 'common'" in audit.findings[1].text
    assert audit.classes == {"common": 1990, "odd": 9, "once": 1}
    assert audited(a_frame(2_000, y=classes(0.05)), Task.BINARY).findings == ()


def test_folds_need_as_many_rows_of_a_class():
    audit = audited(a_frame(200, y=["a"] * 185 + ["b"] * 15), Task.BINARY)
    assert audit.for_folds(None).findings == audit.for_folds(15).findings == ()
    finding = only(audit.for_folds(20))
    assert (finding.kind, finding.option) == ("rare-class", "--cv 15")
    assert finding.text == "class 'b' has 15 rows; 'b' is absent from at least 5 of the 20 test sets"


def test_a_rare_class_that_some_test_sets_lack_is_said_to_be_absent_from_them():
    audit = audited(a_frame(200, y=["a"] * 190 + ["b"] * 7 + ["c"] * 2 + ["d"]), Task.MULTICLASS)
    assert "a split may have too few of them" in audit.for_folds(None).findings[0].text
    said = [finding.text for finding in audit.for_folds(5).findings if finding.kind == "rare-class"]
    assert len(said) == 1
    assert said[0].endswith("; 'd' is absent from all 5 test sets, and other small classes from some")
    pair = audited(a_frame(200, y=["a"] * 197 + ["b"] * 3), Task.BINARY).for_folds(5)
    few = "1 of 2 classes have fewer than 10 rows: 'b' 3"
    assert pair.findings[0].text == f"{few}; 'b' is absent from at least 2 of the 5 test sets"


def test_the_target_itself_is_looked_at():
    numbers = [f"{value},5" for value in range(20)] * 10
    audit = audited(a_frame(y=numbers), Task.MULTICLASS)
    assert ("target-as-text", "--numeric y") in [(finding.kind, finding.option) for finding in audit.findings]
    zeros = only(audited(a_frame(y=lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.random(n)))))
    assert (zeros.kind, zeros.text) == ("repeated-target", "66 % of the rows have the target 0")


def test_arrays_are_audited_without_options_that_could_not_act_on_them():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((300, 3))
    x[:, 1] = 5
    table = Table(x.astype(np.float32), x[:, 0] * 2 + 1, categorical=(), feature_names=("a", "b", "c"))
    audit = audit_table(dataset("mine"), table)
    assert [(finding.kind, finding.column, finding.option) for finding in audit.findings] == [
        ("leak", "a", ""),
        ("constant", "b", ""),
    ]
    assert audit.findings[0].text.startswith("'a' alone predicts the target: ")


def test_a_large_table_is_sampled_always_the_same_and_it_is_said():
    rng = np.random.default_rng(8)
    rows = 3 * SAMPLE
    frame = a_frame(rows, id=np.arange(rows), almost=np.arange(rows) == 7, c=3, gone=np.nan)
    frame["key"] = rng.integers(10**18, 9 * 10**18, rows)
    half = frame.iloc[: rows // 2]
    copies = pd.concat([half, half], ignore_index=True).assign(id=np.arange(rows))
    audit = audited(copies, name="large")
    assert audit.sampled is not None
    assert abs(audit.sampled - SAMPLE) < 1_000
    assert f"{audit.sampled} rows were looked at" in str(audit)
    found = dict(kinds(audit))
    assert found.keys() >= {"duplicate-rows", "id", "missing", "constant"}
    copied = next(finding for finding in audit.findings if finding.kind == "duplicate-rows")
    assert "(50.0 %) repeat an earlier row" in copied.text  # a plain sample would see a third of that
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (that it is left alone is the point)
    assert audited(copies, name="large") == audit
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_an_audit_survives_its_file_and_hostile_names_are_shortened(monkeypatch):
    frame = a_frame(**{"x" * 5_000: 1})
    audit = audited(frame)
    assert DataAudit.model_validate_json(audit.model_dump_json()) == audit
    assert len(audit.findings[0].text) < 200
    monkeypatch.setattr(auditing, "MOST_COLUMNS", 50)
    monkeypatch.setattr(auditing, "_MOST_COLUMNS", 20)
    wide = pd.DataFrame(np.zeros((40, 60)) + np.arange(40)[:, None] % 3).add_prefix("f")
    audit = audited(wide.assign(y=np.arange(40) % 7).assign(c=1)[["c", "y", *wide.columns]])
    assert (audit.n_columns, len(audit.columns), audit.sampled_columns) == (61, 20, 50)
    assert "50 columns were looked at" in audit.headline
    assert audit.columns[1].name == "c"  # what there is something to say of comes first


CELLS = st.one_of(
    st.none(), st.floats(allow_infinity=True), st.integers(-(10**20), 10**20), st.text(max_size=4), st.booleans()
)


def test_groups_that_tell_the_target_and_a_leak_beside_groups_are_found_at_once():
    rng = np.random.default_rng(3)
    who, effect = rng.integers(0, 60, 1200), 2 * rng.normal(size=60)
    a, b = rng.normal(size=(2, 60))[:, who] + 0.05 * rng.normal(size=(2, 1200))
    y = effect[who] + 0.01 * rng.normal(size=1200)
    frame = pd.DataFrame({"patient": [f"p{i}" for i in who], "a": a, "b": b, "y": y})
    assert kinds(audited(frame.assign(y=(y > 0).astype(int)), Task.BINARY)) == [("groups", "patient")]
    leaking = frame.assign(y=y + rng.normal(size=1200)).assign(after=lambda it: 1.1 * it["y"])
    assert kinds(audited(leaking)) == [("leak", "after"), ("groups", "patient")]


def test_a_column_of_ranges_of_the_target_is_a_leak_and_no_group():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 3))
    y = 2 * x[:, 0] + x[:, 1] + 0.5 * rng.normal(size=1200)
    ranges = rng.permutation(40)[pd.qcut(y, 40, labels=False)]
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(range=[f"r{i}" for i in ranges], y=y)
    assert kinds(audited(frame)) == [("leak", "range")]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=30),
    st.sampled_from([Task.REGRESSION, Task.BINARY, Task.MULTICLASS]),
)
def test_no_frame_is_too_strange_to_be_audited(rows, task):
    frame = pd.DataFrame({"a": [row[0] for row in rows], "b": [row[1] for row in rows]})
    frame["y"] = np.arange(len(rows)) % 2
    audit = audited(frame, task)
    assert audit.rows == len(rows)
    assert {finding.kind for finding in audit.findings} <= set(KINDS)


@pytest.mark.parametrize("classes", [False, True])
def test_groups_are_found_by_what_a_split_would_lose_whatever_their_name(classes):
    rng = np.random.default_rng(4)
    who = rng.permutation(np.repeat(np.arange(80), 12))
    effect = rng.normal(size=80)
    y = effect[who] + 0.3 * rng.normal(size=len(who))
    y = (y > 0).astype(int) if classes else y
    b = rng.normal(size=80)[who] + 0.1 * rng.normal(size=len(who))
    frame = pd.DataFrame({"batch": who, "a": rng.normal(size=len(who)), "b": b, "y": y})
    assert kinds(audited(frame)) == [("groups", "batch")]
    assert kinds(audited(frame.assign(batch=[f"w{i}" for i in who]))) == [("groups", "batch")]
    unlike = frame.assign(y=rng.permutation(frame["y"]))
    assert kinds(audited(unlike)) == []


def test_a_number_whose_neighbors_are_alike_is_a_quantity_and_not_a_group():
    rng = np.random.default_rng(5)
    age = rng.integers(20, 80, 1_000)
    frame = pd.DataFrame({"age": age, "a": rng.normal(size=1_000), "y": age / 10 + rng.normal(size=1_000)})
    assert kinds(audited(frame)) == []


def test_a_drift_is_found_by_what_predicting_later_rows_loses():
    rng = np.random.default_rng(6)
    days = pd.date_range("2020-01-01", periods=600)
    walk = np.cumsum(rng.normal(size=600))
    frame = pd.DataFrame({"day": days.strftime("%Y-%m-%d"), "a": rng.normal(size=600), "y": walk})
    found = {finding.kind: finding for finding in audited(frame).findings}
    assert found["drift"].option == "--split time:day"
    assert found["drift"].severe


def in_blocks(rows=1_000, seed=9):
    """Rows of 40 subjects that no column names, one after the other; their features tell who they are."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(rows // 25), 25)
    features = rng.normal(size=(rows // 25, 3))[who] + 0.05 * rng.normal(size=(rows, 3))
    y = rng.normal(size=rows // 25)[who] + 0.2 * rng.normal(size=rows)
    return pd.DataFrame({"a": features[:, 0], "b": features[:, 1], "c": features[:, 2], "y": y}), who


def test_an_order_of_rows_that_matters_is_found_without_a_column_that_tells_it():
    rng = np.random.default_rng(10)
    blocks, _ = in_blocks()
    level = np.arange(1_000) / 100 + rng.normal(size=1_000)
    trend = pd.DataFrame(
        {"level": level, "a": rng.normal(size=1_000), "y": np.arange(1_000) / 50 + rng.normal(size=1_000)}
    )
    for frame in (blocks, trend):
        finding = only(audited(frame))
        assert (finding.kind, finding.column, finding.option) == ("drift", None, "--split time")
        assert kinds(audited(frame.sample(frac=1, random_state=0))) == []
        assert kinds(audited(frame, split=SplitBy("time", ROW_ORDER), split_by=np.arange(1_000))) == []


@pytest.mark.parametrize("name", ["t", "year", "quarter"])
def test_a_counter_of_rows_and_the_years_in_which_they_are_tell_the_order_of_time(name):
    rng = np.random.default_rng(11)
    t = np.arange(800)
    told = {"t": t, "year": 2000 + t // 50, "quarter": [f"{2000 + i // 80}Q{1 + i // 20 % 4}" for i in t]}[name]
    y = t / 8 + 30 * np.sin(t / 58) + rng.normal(0, 3, 800)
    frame = pd.DataFrame({name: told, "a": rng.normal(size=800), "b": rng.normal(size=800), "y": y})
    found = {finding.kind: finding.option for finding in audited(frame).findings}
    assert found.pop("drift") == ("--split time:t" if name == "t" else found.pop("time-order", "--split time"))
    assert found == {}
    assert "drift" not in dict(kinds(audited(frame.assign(y=rng.permutation(y)))))


def test_times_with_gaps_are_not_offered_to_split_by():
    days = pd.Series(pd.date_range("2020-01-01", periods=300).astype(str)).where(np.arange(300) % 40 != 7)
    assert kinds(audited(a_frame(300, day=days))) == [("date", "day")]


def test_an_id_too_long_for_float32_may_group_rows():
    frame, who = in_blocks()
    mixed = frame.assign(who=10**16 + who * 7919).sample(frac=1, random_state=0).reset_index(drop=True)
    assert kinds(audited(mixed)) == [("groups", "who")]


@pytest.mark.parametrize("by", ["height", "y"])
def test_rows_that_were_sorted_are_in_no_order_of_time(by):
    assert kinds(audited(a_frame(600).sort_values(by))) == []
    x = np.random.default_rng(100).normal(size=(150, 3))
    y = np.digitize(x[:, 0] + x[:, 1] * x[:, 2], (-2, 2))
    classes = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=y).sort_values("y", kind="stable")
    assert not {"drift", "groups"} & dict(kinds(audited(classes, Task.MULTICLASS))).keys()


def test_groups_are_found_in_a_column_that_is_left_out_and_not_within_those_that_rows_are_split_by():
    frame, who = in_blocks()
    mixed = frame.assign(who=who, ward=who // 2).sample(frac=1, random_state=0).reset_index(drop=True)
    left_out = [AuditedColumn(name=name, role="dropped", used=False) for name in ("who", "ward")]
    assert kinds(audited(mixed, columns=left_out)) == [("groups", "ward"), ("groups", "who")]
    by_who, by_ward = (
        kinds(audited(mixed, columns=left_out, split=SplitBy("group", name), split_by=mixed[name].to_numpy()))
        for name in ("who", "ward")
    )
    assert (by_who, by_ward) == ([("groups", "ward")], [])


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "day"])
def test_times_as_numbers_are_times_and_no_ids(form):
    days = pd.date_range("2020-01-01", periods=600)
    written = {
        "seconds": (days - pd.Timestamp(0)) // pd.Timedelta("1s"),
        "milliseconds": (days - pd.Timestamp(0)) // pd.Timedelta("1ms"),
        "day": days.strftime("%Y%m%d").astype(np.int64),
    }
    walk = np.cumsum(np.random.default_rng(6).normal(size=600))
    found = audited(pd.DataFrame({"at": np.asarray(written[form]), "a": np.sin(np.arange(600) * 99.0), "y": walk}))
    assert [finding.kind for finding in found.findings] == ["drift", "date", "time-order"]
    assert found.findings[0].option == "--split time:at"


def test_copies_of_rows_do_not_make_their_columns_the_same_and_a_split_that_keeps_them_together_mends_it():
    frame = a_frame(200)
    copies = pd.concat([frame] * 3).sample(frac=1, random_state=0).reset_index(drop=True)
    finding = only(audited(copies))
    assert (finding.kind, finding.option) == ("duplicate-rows", "--split group:height --keep height")
    groups = pd.factorize(copies["height"])[0]
    assert kinds(audited(copies, split=SplitBy("group", "height"), split_by=groups)) == []


@pytest.mark.parametrize(("scale", "odd"), [(1e-7, True), (1e25, True), (1e40, True), (1.0, False), (1e6, False)])
def test_a_target_in_units_that_decide_what_libraries_learn_is_said(scale, odd):
    frame = a_frame()
    assert kinds(audited(frame.assign(y=frame["y"] * scale))) == [("target-scale", None)] * odd


SHIPPED = [name for name, config in DATASETS.items() if config.available is None or not config.available()]
TRUE = {  # what is in the data for everybody to see
    "adult": {("duplicate-columns", "educational-num")},
    "digits": {("constant", f"pixel_{place}") for place in ("0_0", "4_0", "4_7")} | {("almost-constant", "pixel_7_0")},
    "covertype_50k": {("constant", "Soil_Type15"), ("almost-constant", None)},
}


def test_no_shipped_data_set_gives_a_false_alarm():
    found = {name: audit_table(DATASETS[name], open_stored(materialize(DATASETS[name]).path)) for name in SHIPPED}
    assert len(found) > 100
    assert {name: set(kinds(audit)) for name, audit in found.items() if audit.findings} == TRUE
    assert not any(finding.kind in NOTED for audit in found.values() for finding in audit.findings)


def grouped(rows, columns, rng):
    who = rng.permutation(np.repeat(np.arange(rows // 25), 25))
    x = rng.normal(size=(rows // 25, columns))[who] + 0.1 * rng.normal(size=(rows, columns))
    y = rng.normal(size=rows // 25)[who] + 0.3 * rng.normal(size=rows)
    return pd.DataFrame({"who": who, **{f"x{i}": x[:, i] for i in range(columns)}, "y": y})


@pytest.mark.parametrize("classes", [0, 10])
def test_the_largest_quick_fit_takes_less_than_two_seconds_of_a_processor(classes):
    frame = grouped(5_000, 50, np.random.default_rng(7))
    if classes:
        frame["y"] = pd.qcut(frame["y"], classes, labels=False)
    began = time.process_time()
    audit = audited(frame, Task.MULTICLASS if classes else Task.REGRESSION)
    assert time.process_time() - began < 2
    assert ("groups", "who") in kinds(audit)


def test_a_quick_fit_imports_no_library():
    code = (
        "import sys, numpy as np, pandas as pd\n"
        "from boosters_eval.datasets.auditing import audit_frame\n"
        "from boosters_eval.datasets.config import AuditedColumn\n"
        "from boosters_eval.metrics.task import Task\n"
        "who = np.repeat(np.arange(40), 25)\n"
        "frame = pd.DataFrame({'who': who * 7919 % 41, 'a': np.sin(np.arange(1000)), 'y': np.sin(who * 99.0)})\n"
        "columns = [AuditedColumn(name=name, role='numeric') for name in ('who', 'a')]\n"
        "print([f.kind for f in audit_frame(frame, 'y', Task.REGRESSION, columns).findings])\n"
        "print(sorted({'sklearn', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["['groups']", "[]"]


def test_columns_matter_that_explain_the_target_alone_or_whose_categories_are_rare():
    rng = np.random.default_rng(8)
    rows = 1_000
    kind = rng.integers(0, 5, rows)
    x = np.column_stack(
        [
            kind,  # explains
            rng.integers(0, 5, rows),  # does not
            rng.integers(0, 400, rows),  # is rare
            np.where(rng.random(rows) < 0.2, np.nan, kind + rng.normal(size=rows)),  # has missing values
            (kind == 4) & (rng.random(rows) < 0.9),  # is sparse
            kind + rng.normal(size=rows),  # is treated alike by all
        ]
    ).astype(np.float32)
    names = ("kind", "noise", "name", "gaps", "sparse", "plain")
    table = Table(x, kind + 0.5 * rng.normal(size=rows), categorical=(0, 1, 2), feature_names=names)
    touched = {one: name_touched(table, Task.REGRESSION, {one}) for one in ("categorical", "missing", "max_bins", "l2")}
    assert touched == {"categorical": ["kind", "name"], "missing": ["gaps"], "max_bins": ["sparse"], "l2": []}
    several = Table(x, np.column_stack([rng.normal(size=rows), table.y]), categorical=(0, 1), feature_names=names)
    assert name_touched(several, Task.REGRESSION, {"categorical"}) == ["kind"]
    empty = Table(np.full((rows, 1), np.nan, dtype=np.float32), table.y, feature_names=("nothing",))
    assert name_touched(empty, Task.REGRESSION, {"missing"}) == []
