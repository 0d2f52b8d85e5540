"""Panels of what was predicted against what was found: what is drawn where."""

import re

import pytest

from boosters_eval.reports.html.diagrams import Diagram, Panel, draw_diagram
from boosters_eval.reports.html.plots import Plot
from boosters_eval.stats.calibration import Bin

SERIES = {"a": 0, "b": 1, "c": 2}


def make_bin(at, found, low, high, spread=None):
    return Bin(at, found, low, high, 20, 0.5, spread)


def make_diagram(*names, kind="reliability", bins=None):
    bins = bins or [make_bin(0.2, 0.25, 0.1, 0.4), make_bin(0.8, 0.5, 0.4, 0.6)]
    panels = tuple(Panel(name, tuple(bins)) for name in names)
    return Diagram(kind, "data/gbdt", "", "Predicted", "Found", panels, "A caption")


def test_each_competitor_has_a_panel_with_all_bins_and_their_intervals():
    drawn = draw_diagram(make_diagram("a", "b", "c"), SERIES).svg()
    assert [len(re.findall(f'class="s{i} mean"', drawn)) for i in range(3)] == [3, 3, 3]  # and one beside the name
    assert [len(re.findall(f'class="interval s{i}"', drawn)) for i in range(3)] == [2, 2, 2]
    assert drawn.count('class="unit"') == 3


def test_intervals_that_miss_the_line_are_counted():
    figure = draw_diagram(make_diagram("a"), SERIES)
    assert "1 of 2 off" in figure.svg()
    assert figure.description == "Found by Predicted, data/gbdt: a 1 of 2 off."
    good = make_diagram("a", bins=[make_bin(0.2, 0.25, 0.1, 0.4)])
    assert "none off" in draw_diagram(good, SERIES).svg()


def test_residuals_are_expected_at_zero_and_have_a_band():
    bins = [make_bin(10.0, 0.5, 0.1, 0.9, (-2.0, 3.0)), make_bin(20.0, -0.1, -0.4, 0.2, (-4.0, 4.0))]
    drawn = draw_diagram(make_diagram("a", kind="residuals", bins=bins), SERIES).svg()
    assert "1 of 2 off" in drawn
    assert 'polygon class="area s0"' in drawn
    (unit,) = re.findall(r'class="unit" x1="[\d.]+" y1="([\d.]+)" x2="[\d.]+" y2="([\d.]+)"', drawn)
    assert unit[0] == unit[1]


def test_a_bin_without_an_interval_is_a_dot_alone():
    drawn = draw_diagram(make_diagram("a", bins=[make_bin(0.5, 1.0, None, None)]), SERIES).svg()
    assert 'class="interval' not in drawn
    assert "none off" in drawn


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", ["reliability", "residuals", "coverage"])
def test_everything_is_inside_the_picture(kind, count):
    bins = [make_bin(0.0, 1.0, 0.2, 1.0, (-0.4, 0.4)), make_bin(1.0, 0.0, 0.0, 0.5, (-0.4, 0.4))]
    figure = draw_diagram(make_diagram(*list(SERIES)[:count], kind=kind, bins=bins), SERIES)
    places = re.findall(r'(?:cx|x|x1|x2)="(-?[\d.]+)"', figure.svg())
    heights = re.findall(r'(?:cy|y|y1|y2)="(-?[\d.]+)"', figure.svg())
    assert all(0 <= float(value) <= 400 for value in places)
    assert all(0 <= float(value) <= figure.height for value in heights)


def test_a_panel_is_drawn_as_a_file_too():
    plot = Plot((draw_diagram(make_diagram("a", "b"), SERIES),))
    assert plot.drawn("pdf").startswith(b"%PDF")
    assert "currentColor" not in plot._repr_svg_()
