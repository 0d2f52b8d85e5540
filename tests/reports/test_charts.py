"""The charts: what is drawn where, without a browser."""

import re
from itertools import pairwise

import pytest

from boosters_eval.reports.html.charts import contrast, cost_chart, forest_chart, leader, metric_chart, rank_chart
from boosters_eval.reports.html.svg import RowNames, Scale, fit, legend, marker, part_marks, swarm, text_width, x_axis
from boosters_eval.reports.tables import Column, PairVerdict, RankingTable, ReportTable, Row, TableCell

SCORE = Column("rmse", "RMSE", higher_is_better=False, primary=True)
TIME = Column(
    "train_time_s", "Train time (s)", higher_is_better=False, kind="time", cost=True, quantity="Training time"
)
SERIES = {"a": 0, "b": 1, "c": 2}


def cell(*values):
    mean = sum(values) / len(values)
    return TableCell(mean=mean, std=0.0, n=len(values), text=f"{mean:g}", values=values)


def pair(a, b, difference, low, high, verdict, *, metric="rmse", ratio=None):
    return PairVerdict(
        "t", metric, "RMSE", a, b, verdict, difference, None, ratio, low, high, 0.01, 3, None, "", "", 0.05
    )


def table(rows, *, columns=(SCORE,), pairs=(), trivial=()):
    points = ("seed 1", "seed 2", "seed 3")
    made = tuple(Row((name,), cells, n=3, points=points[: len(cells[0].values)]) for name, cells in rows.items())
    return ReportTable("t", ("Library",), columns, made, pairs=pairs, trivial=trivial)


def places(figure, pattern):
    return [(float(x), float(y)) for x, y in re.findall(pattern, figure.svg())]


def test_equal_values_are_stacked_so_that_every_dot_is_seen():
    figure = metric_chart(table({"a": (cell(0.5, 0.5, 0.5),), "b": (cell(0.5, 0.6, 0.7),)}), 0, SERIES, 0.05)
    dots = places(figure, r'<circle class="dot s\d" cx="([\d.]+)" cy="([\d.]+)"')
    assert len(dots) == len(set(dots)) == 6
    means = places(figure, r'<circle class="s0 mean" cx="([\d.]+)" cy="([\d.]+)"')
    assert all(y - means[0][1] >= 7 for _, y in dots[:3])  # the mean is above its dots, not on them


def test_a_hundred_equal_values_still_have_places_of_their_own():
    assert len(set(swarm([5.0] * 100, 4))) == 100
    assert swarm([0, 10, 20], 4) == [0, 0, 0]
    assert swarm([0, 1, 10, 2], 4) == [0, 1, 0, 2]


def test_marks_at_one_place_are_spread_around_it():
    found = part_marks([(10, 10), (10.5, 10), (90, 90)], 6, 8)
    assert len({(round(x), round(y)) for x, y in found}) == 3
    assert found[2] == (90, 90)


def test_the_forest_shows_the_others_against_the_leader_with_its_verdict_as_shape_and_word():
    pairs = (
        pair("a", "b", -0.2, -0.3, -0.1, "better"),
        pair("a", "c", -0.01, -0.05, 0.03, "inconclusive"),
        pair("b", "c", 0.19, 0.1, 0.3, "worse"),
    )
    rows = {"a": (cell(0.5, 0.5),), "b": (cell(0.7, 0.7),), "c": (cell(0.51, 0.51),)}
    figure = forest_chart(table(rows, pairs=pairs), 0)
    svg = figure.svg()
    assert "RMSE minus that of a" in svg
    assert re.findall(r'class="v (\w+)" x=.*?>(\w+)<', svg) == [("worse", "worse"), ("inconclusive", "inconclusive")]
    assert '<polygon class="v worse"' in svg
    assert '<circle class="v inconclusive"' in svg
    (zero,) = re.findall(r'<line class="unit" x1="([\d.]+)"', svg)
    worse, unclear = re.findall(r'<path class="interval \w+" d="M([\d.]+) [\d.]+H([\d.]+)M', svg)
    assert float(zero) < float(worse[0]) < float(worse[1])
    assert float(unclear[0]) < float(zero) < float(unclear[1])
    chosen = forest_chart(table(rows, pairs=pairs), 0, reference="b").svg()
    assert re.findall(r'class="v (\w+)" x=', chosen) == ["better", "better"]


def test_a_contrast_is_turned_round_with_its_interval():
    turned = contrast(pair("a", "b", -0.2, -0.3, -0.1, "better"), "a", as_ratio=False)
    assert (turned.name, turned.size, turned.low, turned.high, turned.verdict) == ("b", 0.2, 0.1, 0.3, "worse")
    ratio = contrast(pair("a", "b", 1.0, 2.0, 8.0, "worse", ratio=4.0), "a", as_ratio=True)
    assert (ratio.size, ratio.low, ratio.high, ratio.verdict) == (0.25, 0.125, 0.5, "better")


def test_the_leader_is_found_on_the_splits_that_all_have():
    lucky = Row(("b",), (cell(0.1),), n=1, points=("seed 1",))
    steady = Row(("a",), (cell(0.05, 0.9, 0.9),), n=3, points=("seed 1", "seed 2", "seed 3"))
    assert leader(ReportTable("t", ("Library",), (SCORE,), (lucky, steady)), 0) == "a"
    assert leader(table({}), 0) is None


@pytest.mark.parametrize("caveat", ["", "times are indicative only"])
def test_the_front_joins_what_nothing_beats_in_both_and_is_faint_if_times_are_not_judged(caveat):
    time = Column("train_time_s", "Train time (s)", higher_is_better=False, kind="time", cost=True, caveat=caveat)
    rows = {"a": (cell(0.9), cell(1.0)), "b": (cell(0.5), cell(10.0)), "c": (cell(0.95), cell(20.0))}
    figure = cost_chart(table(rows, columns=(SCORE, time)), SERIES)
    ((kind, path),) = re.findall(r'<path class="([\w ]+)" d="([^"]+)"', figure.svg())
    assert kind == ("front faint" if caveat else "front")
    assert path.count("V") == 2  # c is beaten by both
    assert ("faint" in figure.caption) is bool(caveat)
    assert "(log axis)" in figure.svg()


def test_what_costs_nothing_is_drawn_too_and_is_on_the_front():
    rows = {"a": (cell(0.3), cell(0.0)), "b": (cell(0.5), cell(1e-4)), "c": (cell(0.4), cell(100.0))}
    figure = cost_chart(table(rows, columns=(SCORE, TIME)), SERIES)
    assert figure.svg().count(" mean") == 6  # in the legend, too
    ((path,),) = [re.findall(r'<path class="[\w ]+" d="([^"]+)"', figure.svg())]
    assert path.count("V") == 1  # nothing beats a
    assert "(log axis)" not in figure.svg()


@pytest.mark.parametrize("size", [1.0, 1e6, 1e-300])
def test_the_title_of_a_vertical_axis_is_beside_its_labels(size):
    figure = cost_chart(
        table({n: (cell(v * size), cell(v)) for n, v in {"a": 1, "b": 2}.items()}, columns=(SCORE, TIME)), SERIES
    )
    ends = re.findall(r'class="tick" x="([\d.]+)" y="[\d.]+" text-anchor="end">([^<]+)<', figure.svg())
    assert min(float(x) - text_width(shown, 10.5) for x, shown in ends) > 15


def test_equal_ranks_have_rows_of_their_own():
    ranks = (("a", 2.0), ("b", 2.0), ("c", 2.0))
    ranking = RankingTable("gbdt", "Library", "primary metric", "data sets", ranks, (), (("a", "b", "c"),), 9)
    figure = rank_chart(ranking, SERIES)
    assert figure.svg().count(">2.00<") == 3
    tops = re.findall(
        r'<(?:circle|polygon) class="s\d mean" (?:cx="[\d.]+" cy="([\d.]+)"|points="[\d.]+,([\d.]+))', figure.svg()
    )
    assert len({float(a or b) for a, b in tops}) == 3
    assert 'class="clique"' in figure.svg()


def test_a_trivial_prediction_is_a_line_or_a_remark_if_it_is_far_away():
    rows = {"a": (cell(0.5, 0.6),), "b": (cell(0.55, 0.6),)}
    near = Row(("predict the mean",), (cell(0.65),), n=1, points=("seed 1",))
    far = Row(("predict the median",), (cell(9.0),), n=1, points=("seed 1",))
    figure = metric_chart(table(rows, trivial=(near, far)), 0, SERIES, 0.05)
    assert figure.svg().count('class="unit"') == 1
    assert ">predict the mean<" in figure.svg()
    assert "predict the median is beyond the axis (9)" in figure.caption


def test_labels_of_ticks_never_touch():
    for values in ([0.40001, 0.40009], [-1e-5, 2e-5], [0.0, 123456.0]):
        parts = x_axis(fit(values, 150, 310), 0, 10, "title")
        ticks = [(float(x), shown) for x, shown in re.findall(r'class="tick" x="([\d.]+)".*?>([^<]+)<', "".join(parts))]
        for (left, first), (right, second) in pairwise(ticks):
            assert right - left >= (text_width(first, 10.5) + text_width(second, 10.5)) / 2
    assert "(log axis)" in "".join(x_axis(Scale(1, 100, 0, 300, log=True), 0, 10, "time"))


def test_long_names_are_above_their_rows_and_keep_both_ends():
    names = RowNames.of(["boosters", "lightgbm growth_strategy=leafwise"])
    assert names.above
    assert ">lightgbm growth_strategy=leafwise<" in names.write("lightgbm growth_strategy=leafwise", 0, 10)
    assert not RowNames.of(["boosters"]).above
    cut = re.search(r">([^<]+)<", names.write("x" * 40 + "first" + "y" * 40 + "last", 0, 10))[1]
    assert cut.startswith("xxx")
    assert cut.endswith("last")


def test_more_than_eight_competitors_differ_in_color_or_shape():
    marks = {re.sub(r'points="[^"]*"', str(marker(0, 0, i, 5).count(",")), marker(0, 0, i, 5)) for i in range(8)}
    assert len(marks) == 8
    drawn = [marker(0, 0, index, 5) for index in range(16)]
    assert len(set(drawn)) == 16
    assert len(legend([f"n{i}" for i in range(16)], {f"n{i}": i for i in range(16)})[0]) == 32


@pytest.mark.parametrize("values", [(-1e308, 1e308), (1e-320, 2e-320), (0.0, 0.0)])
def test_extreme_values_draw_nothing_or_something_but_never_fail(values):
    found = table({"a": (cell(*values), cell(1.0, 2.0)), "b": (cell(*values), cell(1.0, 2.0))}, columns=(SCORE, TIME))
    for figure in (metric_chart(found, 0, SERIES, 0.05), cost_chart(found, SERIES), forest_chart(found, 0)):
        assert figure is None or "nan" not in figure.svg()


@pytest.mark.parametrize("values", [(0.1802490, 0.1802490038), (1e6 + 1e-7, 1e6 + 5e-7), (0.5, 0.6), (1e-300, 2e-300)])
def test_no_two_ticks_have_the_same_label(values):
    labels = [shown for _, shown in fit(list(values), 0, 300).ticks()]
    assert len(labels) >= 2
    assert len(set(labels)) == len(labels)


def test_an_option_in_a_caption_is_not_broken():
    time = Column("t", "Train time (s)", higher_is_better=False, cost=True, caveat="not taken with --timing-mode")
    rows = {"a": (cell(0.9), cell(1.0)), "b": (cell(0.5), cell(2.0))}
    assert "<code>--timing-mode</code></figcaption>" in cost_chart(table(rows, columns=(SCORE, time)), SERIES).html()
