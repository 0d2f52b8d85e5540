"""results.plot(): the charts of the page in notebooks and files."""

import re
import zlib
from xml.etree import ElementTree as ET

import pytest

from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.document import build_document


@pytest.mark.parametrize("kind", ["strips", "forest", "pareto"])
def test_a_plot_is_one_picture_that_needs_no_style_sheet(timed, kind):
    picture = timed.plot(kind)._repr_svg_()
    root = ET.fromstring(picture)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "california/gbdt (5 splits)" in texts
    assert "lightgbm" in texts
    assert not any(part.get("class") for part in root.iter())
    assert "var(" not in picture
    assert "currentColor" not in picture
    assert timed.plot(kind)._repr_html_().startswith("<div")
    assert repr(timed.plot(kind)).startswith("Plot(california/gbdt ")
    assert "<" not in repr(timed.plot(kind))


@pytest.mark.parametrize("kind", ["strips", "forest", "pareto"])
def test_a_plot_has_the_same_texts_in_a_pdf(timed, kind, tmp_path):
    picture = timed.plot(kind)
    texts = {text.text for text in ET.fromstring(picture._repr_svg_()).iter("{http://www.w3.org/2000/svg}text")}
    pdf = picture.save(tmp_path / "chart.pdf").read_bytes()
    drawn = zlib.decompress(re.search(rb"stream\n(.*)\nendstream", pdf, re.DOTALL)[1]).decode()
    written = {bytes.fromhex(text).decode("cp1252") for text in re.findall(r"/[RB] [\d.]+ Tf <(\w+)>", drawn)}
    assert {text for text in texts if text.isascii()} <= written
    assert "lightgbm" in written


def test_the_charts_are_those_of_the_page(timed):
    page = build_document(timed, "comparison").to_html()
    for figure in (*timed.plot("strips").figures, *timed.plot("forest").figures, *timed.plot("pareto").figures):
        assert figure.svg() in page


def test_ranks_need_several_data_sets(crowd):
    found = crowd(2, seeds=2)
    (figure,) = found.plot("ranks").figures
    assert figure.title == "gbdt: average rank by primary metric over 2 data sets"
    with pytest.raises(ConfigError, match="the chart 'ranks' needs two data sets with the same booster"):
        found.filter(dataset="data_00").plot("ranks")


def test_metric_and_reference_are_chosen_by_name(sample):
    (figure,) = sample.plot("forest", metric="Auc", reference="CatBoost").figures
    assert figure.name == "breast_cancer/gbdt auc_roc differences"
    assert "AUC minus that of catboost" in figure.svg()


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        (
            {"kind": "pie"},
            UnknownNameError,
            "Unknown chart 'pie'. Known: coverage, forest, pareto, ranks, reliability, residuals, strips.",
        ),
        ({"kind": "strips", "metric": "ndcg"}, UnknownNameError, "Unknown metric 'ndcg'."),
        ({"kind": "forest", "reference": "boster"}, UnknownNameError, "Unknown reference 'boster'. Did you mean"),
        ({"kind": "forest", "metric": 3}, ConfigError, "The 'metric' parameter must be a name. Got 3 instead."),
    ],
)
def test_a_mistake_gets_one_sentence(sample, options, error, sentence):
    with pytest.raises(error) as caught:
        sample.plot(**options)
    assert str(caught.value).startswith(sentence)


def test_nothing_to_draw_is_said():
    with pytest.raises(ConfigError, match="the chart 'strips' needs a cell that finished"):
        ResultCollection().plot()


def test_plots_are_saved_as_svg_or_html_and_as_nothing_else(hostile, tmp_path):
    plot = hostile.plot()
    svg, page = plot.save(tmp_path / "chart.svg"), plot.save(str(tmp_path / "chart.HTML"))
    assert ET.parse(svg).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "<script" not in page.read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"must end in .svg, .pdf or .html. Got '.*chart.png' instead"):
        plot.save(tmp_path / "chart.png")
