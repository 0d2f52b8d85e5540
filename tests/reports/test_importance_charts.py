"""Dots, heat maps and swarms from plain data: what is drawn, on which scale, and what has nothing to draw."""

import re
import xml.etree.ElementTree as ET

import pytest

from boosters_eval.reports.html.features import SHADES, Bees, Dot, bee_charts, dot_charts, heat_chart
from boosters_eval.reports.numbers import MISSING

ORDER = ["income", "age", "rooms"]


def drawing(figure):
    """The drawing of a figure, which must be XML: a name that is not escaped would break it."""
    return ET.fromstring(re.search(r"<svg.*?</svg>", figure.html(), flags=re.DOTALL).group())


def words(figure):
    return "".join(drawing(figure).itertext())


def classes(figure, name):
    return [one for one in drawing(figure).iter() if name in one.get("class", "").split()]


def dots(panels, order=ORDER):
    return dot_charts("Importance", "share of the sum", order, panels, dict.fromkeys(panels, 0), "the mean")


def test_each_panel_has_its_dots_in_one_order_on_one_scale_with_a_titled_axis():
    first, second = dots({"a": {"income": Dot(0.7), "age": Dot(0.2)}, "b": {"income": Dot(0.1, 0.0, 0.2)}})
    assert len(classes(first, "mean")) == 2
    assert len(classes(second, "mean")) == 1
    assert (len(classes(first, "bar")), len(classes(second, "bar"))) == (0, 1)
    ticks = [[one.text for one in classes(figure, "tick")] for figure in (first, second)]
    assert ticks[0] == ticks[1]
    for figure in (first, second):
        assert "share of the sum" in words(figure)
        assert words(figure).index("income") < words(figure).index("age") < words(figure).index("rooms")


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-12, 1e12])
def test_a_single_dot_is_drawn_inside(value):
    (figure,) = dots({"a": {"income": Dot(value)}}, ["income"])
    (mark,) = classes(figure, "mean")
    assert mark is not None
    assert "nan" not in figure.html().lower()


@pytest.mark.parametrize(
    ("panels", "order"),
    [({}, ORDER), ({"a": {}}, ORDER), ({"a": {"income": Dot(1.0)}}, []), ({"a": {"income": Dot(float("nan"))}}, ORDER)],
    ids=["no panel", "no dot", "no feature", "no number"],
)
def test_without_dots_there_is_no_chart(panels, order):
    assert dots(panels, order) == []


def test_a_heat_map_has_a_number_in_every_cell_and_a_dash_where_there_is_none():
    figure = heat_chart("Agreement", ["a", "b"], {("a", "a"): 1.0, ("a", "b"): -0.25, ("b", "b"): None}, "tau")
    cells = classes(figure, "heat")
    assert len(cells) == 4
    assert [float(one.get("fill-opacity")) for one in cells] == [0.5, 0.0, 0.0, 0.0]
    assert words(figure).count("-0.25") == 4  # in both halves, each with what the mouse is told
    assert MISSING in words(figure)


@pytest.mark.parametrize("count", [1, 2, 12])
def test_a_heat_map_of_any_size_stays_inside(count):
    names = [f"library_{i}" for i in range(count)]
    figure = heat_chart("Agreement", names, {}, "tau")
    width, height = map(float, drawing(figure).get("viewBox").split()[2:])
    for one in classes(figure, "heat"):
        assert float(one.get("x")) + float(one.get("width")) <= width
        assert float(one.get("y")) + float(one.get("height")) <= height


def test_no_names_are_no_heat_map():
    assert heat_chart("Agreement", [], {}, "tau") is None


def bees(panels, order=ORDER):
    return bee_charts("Attributions", "attribution to the raw score", order, panels, ("low value", "high"))


def points(figure):
    """How many points each shade has, the legend's own besides."""
    found = {}
    for one in classes(figure, "bee"):
        shade = one.get("class").split()[1]
        found[shade] = found.get(shade, 0) + one.get("d").count("M")
    return {shade: count - (shade != "neutral") for shade, count in found.items()}


def test_every_row_is_a_point_in_the_shade_of_its_value():
    (figure,) = bees({"a": {"income": Bees([-1.0, 0.0, 2.0, 2.0], [0.0, 0.5, 1.0, None])}})
    drawn = points(figure)
    assert (drawn["q0"], drawn[f"q{SHADES // 2}"], drawn[f"q{SHADES - 1}"], drawn["neutral"]) == (1, 1, 1, 1)
    assert sum(drawn.values()) == 4
    assert "attribution to the raw score" in words(figure)


@pytest.mark.parametrize("places", [[0.0], [5.0], [0.0] * 150, [1e-9, -1e9]])
def test_swarms_of_one_point_or_of_equal_ones_are_drawn(places):
    (figure,) = bees({"a": {"income": Bees(places, [0.5] * len(places))}}, ["income"])
    assert sum(points(figure).values()) == len(places)
    assert "nan" not in figure.html().lower()


@pytest.mark.parametrize(
    ("panels", "order"),
    [({}, ORDER), ({"a": {}}, ORDER), ({"a": {"income": Bees([], [])}}, ORDER), ({"a": {"x": Bees([1.0], [0.0])}}, [])],
    ids=["no panel", "no feature drawn", "no rows", "no order"],
)
def test_without_points_there_is_no_swarm(panels, order):
    assert bees(panels, order) == []


@pytest.mark.parametrize(
    "draw", [lambda p: dots({"<i>": {p: Dot(1.0)}}, [p]), lambda p: bees({"<i>": {p: Bees([1.0], [0.0])}}, [p])]
)
def test_names_stay_text(draw):
    (figure,) = draw("<b>&\"'")
    assert "<b>" in words(figure)
    assert not [one for one in drawing(figure).iter() if one.tag.endswith("}b") or one.tag == "b"]
