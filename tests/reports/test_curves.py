"""Lines of a value over what was spent."""

import math
import re

import pytest

from boosters_eval.reports.html.curves import CurvePoint, draw_curves
from boosters_eval.reports.html.plots import Plot
from boosters_eval.reports.tables import Column

ABOUT = {"name": "a", "title": "A", "description": "A by trials.", "caption": "A."}


def draw(**lines):
    points = {name: [CurvePoint(*at, f"{name} at {at[0]}") for at in line] for name, line in lines.items()}
    series = {name: at for at, name in enumerate(points)}
    return draw_curves(points, series, Column("rmse", "RMSE", higher_is_better=False), "trials", **ABOUT)


def test_each_line_goes_through_its_points_inside_the_drawing():
    drawn = draw(one=[(k, 10 - k) for k in range(9)], two=[(k, 5.0) for k in range(9)])
    svg = drawn.svg()
    paths = re.findall(r'<polyline class="trace" points="([^"]*)"', svg)
    assert [len(path.split()) for path in paths] == [9, 9]
    places = [tuple(map(float, place.split(","))) for path in paths for place in path.split()]
    assert all(0 < x < 400 and 0 < y < drawn.height for x, y in places)
    falling = [y for _, y in places[:9]]
    assert falling == sorted(falling)  # a lower value is drawn below
    assert "one at 8" in svg


def test_a_long_line_has_no_more_marks_than_can_be_told_apart():
    drawn = draw(one=[(k, k) for k in range(1001)])
    assert "".join(drawn.parts).count("<title>") <= 25


def test_a_single_point_is_drawn():
    assert "<circle" in draw(one=[(0, 1.0)]).svg()


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e308])
def test_what_no_axis_can_hold_is_not_drawn(value):
    assert draw(one=[(0, -value), (1, value)]) is None


def test_it_is_a_file_too():
    assert Plot((draw(one=[(0, 1.0), (1, 2.0)]),)).drawn("pdf").startswith(b"%PDF")
