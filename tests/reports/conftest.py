"""A report that has nothing to do with benchmarks: numbers of a paper, checked against a run."""

import pytest

from boosters_eval.reports import (
    Code,
    Column,
    Details,
    Fact,
    Listing,
    ListItem,
    PairVerdict,
    Paragraph,
    PlainTable,
    RankingPair,
    RankingTable,
    Report,
    ReportDocument,
    ReportTable,
    Row,
    Section,
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
    """The same as a whole document, with a section of each kind of block."""
    verdict = PairVerdict(
        table="Table 2",
        metric="accuracy",
        label="Accuracy",
        a="MLP iris",
        b="CNN iris",
        verdict="better",
        difference=0.022,
        percent=2.4,
        ratio=None,
        low=0.01,
        high=0.03,
        p=0.01,
        n=5,
        detectable=None,
        note="",
        text="MLP is better.",
    )
    first, second = paper.tables
    claims = ReportTable(
        first.name, first.row_names, first.columns, first.rows, first.keys, notes=first.notes, pairs=(verdict,)
    )
    ranking = RankingTable(
        name="all",
        heading="Model",
        measure="accuracy",
        over="tables",
        ranks=(("MLP", 1.0), ("RNN", 2.0)),
        pairs=(RankingPair("MLP", "RNN", 2, 0, 0, None),),
        groups=(),
        n=2,
        descriptive=True,
        notes=("Too few tables to test.",),
    )
    return ReportDocument(
        title="Does <it> reproduce?",
        lead="Two tables of a paper.",
        facts=(Fact(label="Claims", value="6"), Fact(label="Failed", value="1", alarm=True)),
        environment=(("Paper", "arXiv 1234.5678"),),
        configuration=(("Tolerance", "1 %"),),
        tables=(claims, second),
        group_by="page",
        rankings=(ranking,),
        notes=paper.notes,
        sections=(
            Section(
                anchor="sources",
                title="Sources of the Numbers",
                short="Sources",
                search="Filter sources",
                blocks=(
                    Paragraph(text="Where each number was found."),
                    PlainTable(
                        name="Sources",
                        headings=("Number", "Line", "Distance"),
                        rows=(("0.95", 12400, 0.25), ("0.9|1", None, 3.0)),
                    ),
                    Listing(items=(ListItem(text="Table 3 is ", mark="illegible", rest=" in parts"),)),
                    Details(title="How", aside="two steps", blocks=(Paragraph(text="By hand."),)),
                    Details(title="Log", blocks=(Code(text="a\n  <b>\n```"),), long=True),
                ),
            ),
        ),
        reproduce=("make paper",),
    )
