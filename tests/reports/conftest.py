"""A report that has nothing to do with benchmarks: numbers of a paper, checked against a run."""

import pytest

from boosters_eval.reports.document import (
    Card,
    Charts,
    Code,
    Details,
    Document,
    Fact,
    Group,
    Listing,
    ListItem,
    MarkedCell,
    Notes,
    Paragraph,
    PlainTable,
    Results,
    Section,
)
from boosters_eval.reports.html.charts import draw_table
from boosters_eval.reports.tables import (
    Column,
    Report,
    ReportTable,
    Row,
    TableCell,
)


def value(text, status="ok", mean=None, **changes):
    return TableCell(mean=mean, std=None, n=0 if mean is None else 1, text=text, status=status, **changes)


@pytest.fixture(scope="session")
def paper():
    """Every status once, two row names, no repeats; and a table of times with a key of its own."""
    claims = ReportTable(
        name="Table 2",
        row_names=("Model", "Data set"),
        columns=(
            Column("reported", "Reported", None),
            Column("accuracy", "Accuracy", higher_is_better=True, primary=True, floor=0.0),
        ),
        rows=(
            Row(("MLP", "iris"), (value("0.95", mean=0.95), value("0.953", "pass", 0.953, best=True))),
            Row(("MLP", "wine|red"), (value("0.91", mean=0.91), value("0.902", "warn", 0.902))),
            Row(("CNN", "iris"), (value("0.97", mean=0.97), value("0.931", "fail", 0.931))),
            Row(("CNN", "wine|red"), (value("0.96", mean=0.96), value("", "error"))),
            Row(("SVM", "iris"), (value("0.94", mean=0.94), value("\u2013", "missing"))),
            Row(("SVM", "wine|red"), (value("n/a", "unsupported"), value("", "skipped"))),
        ),
        keys={"page": "7", "model": "all"},
        notes=("The paper does not name its splits.",),
    )
    seconds = Column("seconds", "Time (s)", higher_is_better=False, kind="time", cost=True, unit="s", caveat="one run")
    times = ReportTable(
        name="Table 3",
        row_names=("Model",),
        columns=(seconds,),
        rows=(
            Row(("MLP",), (value("1.500", mean=1.5, values=(1.0, 2.0)),), n=2, points=("first", "second")),
            Row(("CNN",), (value("", "error", values=(None,)),), n=1, failed=1, points=("first",)),
        ),
        keys={"page": "8"},
        details=("2 repeats",),
    )
    return Report((claims, times), notes=("Numbers are compared to the digits that the paper prints.",))


@pytest.fixture(scope="session")
def document(paper):
    """The same as a whole document, with a block of each kind."""
    first, second = paper.tables
    series = {row.label: place for place, row in enumerate((*first.rows, *second.rows))}
    verdicts = (
        (
            "Table 2",
            "MLP iris",
            MarkedCell("0.022 (+2.4 %)", value=2.4),
            MarkedCell("better", "better", title="MLP is it."),
        ),
    )
    return Document(
        "Does <it> reproduce?",
        ("It does not: 1 claim of 6 failed.",),
        "Two tables of a paper.",
        (Fact("Claims", "6"), Fact("Failed", "1", alarm=True)),
        PlainTable("Standing", ("Model", "Claims"), (("MLP", 2), ("CNN", 2))),
        (
            Section(
                "results",
                "Results",
                (
                    Group("Page 7", (Results(first),)),
                    Group("", (Results(second, Charts(lambda: draw_table(second, series, 0.05))),)),
                ),
                search="Filter tables",
            ),
            Section(
                "tests", "Statistical Tests", (PlainTable("Tests", ("Table", "A", "A - B", "A is"), verdicts, keys=2),)
            ),
            Section(
                "ranks", "Ranks", (Card("By accuracy", (Paragraph("Too few tables to test."),), "2 tables", "rank"),)
            ),
            Section("notes", "Notes", (Notes(paper.notes),)),
            Section(
                "sources",
                "Sources of the Numbers",
                short="Sources",
                search="Filter sources",
                blocks=(
                    Paragraph("Where each number was found."),
                    PlainTable(
                        "Sources", ("Number", "Line", "Distance"), (("0.95", 12400, 0.25), ("0.9|1", None, 3.0))
                    ),
                    Listing((ListItem("Table 3 is ", "illegible", " in parts"),)),
                    Details("How", (Paragraph("By hand."),), "two steps"),
                    Details("Log", (Code("a\n  <b>\n```"),), long=True),
                ),
            ),
            Section("environment", "Environment", (Listing.of("arXiv 1234.5678"),), preface=True, detail=True),
            Section("page", "Only on the page", (Paragraph("For browsers."),), only="page"),
            Section("text", "Only in text", (Paragraph("For readers."),), only="text"),
            Section("empty", "Nothing", ()),
            Section("reproduce", "Reproducing", (Code("make paper", "bash"),)),
        ),
    )
