"""Reference against measurement: a chart that knows nothing of papers."""

import re

from boosters_eval.reports.document import Charts, Document, Results, Section
from boosters_eval.reports.html.charts import draw_table, reference_chart
from boosters_eval.reports.html.page import render_page
from boosters_eval.reports.tables import Column, ReportTable, Row, TableCell

EXPECTED = Column("expected", "Nominal", None, kind="reference")
FOUND = Column("found", "Weighed", None, kind="measured", quantity="Weight (g)")


def cell(mean, std=None, **changes):
    return TableCell(mean=mean, std=std, n=1, text="" if mean is None else f"{mean:g}", **changes)


def table(*rows, columns=(EXPECTED, FOUND)):
    return ReportTable("Bolts", ("Bolt",), columns, tuple(Row((row[0],), tuple(row[1:])) for row in rows))


def drawn(*given):
    return reference_chart(*given).html()


def number(pattern, text):
    return [float(found) for found in re.findall(pattern, text)]


def test_the_band_holds_what_is_accepted_and_the_marks_their_values():
    chart = drawn(table(("M8", cell(10.0, low=9.0, high=11.0), cell(12.0, 0.5))))
    ((x, width),) = re.findall(r'<rect class="band" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', chart)
    (measured,) = number(r'<circle class="s0 mean" cx="([\d.]+)" cy="[\d.]+" r="5"><title>M8', chart)
    left, right = float(x), float(x) + float(width)
    per_gram = (right - left) / 2
    assert abs(measured - left - 3 * per_gram) < 0.2  # 12 is 3 above the band's lower end
    ((low, high),) = re.findall(r'<line class="whisker s0" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', chart)
    assert abs(float(high) - float(low) - per_gram) < 0.2  # one standard deviation to each side
    assert "Weight (g): Nominal and Weighed, mean ± standard deviation; the band is what is accepted" in chart
    assert 'aria-label="Weight (g) of Bolts. M8: Nominal 10, Weighed 12."' in chart


def test_a_measurement_that_is_missing_is_said_and_not_drawn():
    chart = drawn(table(("M8", cell(10.0), cell(None, status="error")), ("M6", cell(5.0), cell(5.1))))
    assert "M8 (error)" in chart
    assert chart.count("<title>M8") == 1
    assert "band" not in chart


def test_names_are_escaped_in_every_place():
    hostile = '<script>alert("x")</script>'
    columns = (
        Column("a", hostile, None, kind="reference"),
        Column("b", hostile, None, kind="measured", quantity=hostile),
    )
    made = table((hostile, cell(1.0, 0.1), cell(1.0, 0.1)), columns=columns)
    document = Document(
        "t", sections=(Section("t", hostile, (Results(made, Charts(lambda: draw_table(made, {}, 0.05))),)),)
    )
    assert render_page(document).count("<script>") == 1  # the page's own


def test_only_a_table_with_both_kinds_of_columns_has_the_chart():
    lone = Column("other", "Other", None)
    assert reference_chart(table(("M8", cell(1.0), cell(1.0)), columns=(EXPECTED, lone))) is None
    assert reference_chart(table(("M8", cell(None), cell(1.0)))) is None
    assert reference_chart(table()) is None


def test_values_that_no_axis_can_hold_are_left_to_thetable():
    assert reference_chart(table(("M8", cell(-1e308), cell(1e308)))) is None
    assert "<svg" in drawn(table(("M8", cell(0.0), cell(0.0))))
