"""Diagrams of what a run predicted, made from its kept predictions."""

import numpy as np
import pandas as pd
import pytest

from boosters_eval import TrainingConfig, compare, draw_figures, prune_runs
from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics.classification import reliability
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.diagrams import collect_diagrams
from boosters_eval.programs.benchmark.tables.document import build_document
from browser import faults
from tiny import FEW, shared_pool

DATASETS = {
    "diabetes": "residuals",
    "breast_cancer": "reliability",
    "iris": "reliability",
    "synthetic_quantile_small": "coverage",
}


def run(dataset, **options):
    usual = {"executor": shared_pool(), "seeds": 2, "training": FEW}
    return compare(dataset, ["sklearn", "lightgbm"], **{**usual, **options})


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_task_has_its_diagram_on_the_page_and_in_notebooks(home, dataset):
    found = run(dataset)
    (diagram,) = collect_diagrams(found).drawn
    assert diagram.kind == DATASETS[dataset]
    assert [panel.name for panel in diagram.panels] == ["sklearn", "lightgbm"]
    page = build_document(found, "comparison").to_html()
    (figure,) = found.plot(diagram.kind).figures
    assert figure.svg() in page
    assert 'id="calibration"' in page


def test_bins_are_those_of_all_kept_predictions(home):
    found = run("breast_cancer", seeds=5)
    evidence = found.evidence
    fits = [evidence.of(result) for result in found.results if result.library == "lightgbm"]
    said, true = (np.concatenate(parts) for parts in zip(*((f.predictions, f.split.y_true) for f in fits), strict=True))
    expected = [one for one in reliability(said, true) if one.rows]
    panel = collect_diagrams(found).drawn[0].panels[1]
    assert [one.rows for one in panel.bins] == [one.rows for one in expected]
    assert [one.found for one in panel.bins] == pytest.approx([one.mean_label for one in expected])
    assert [one.at for one in panel.bins] == pytest.approx([one.mean_prediction for one in expected])


def test_the_numbers_are_in_the_json_report(home):
    found = run("iris")
    text = build_document(found, "quality").model_dump_json()
    assert '"diagrams":[{"kind":"reliability"' in text


def test_figures_writes_diagrams_too(home, tmp_path):
    run("diabetes", name="one")
    written = draw_figures("one", tmp_path, format=["svg", "pdf"])
    assert {"diabetes-gbdt-residuals.svg", "diabetes-gbdt-residuals.pdf"} <= {path.name for path in written.paths}


@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (lambda _: run("iris", predictions=False), "the predictions were not kept"),
        (lambda found: ResultCollection.from_json(found.to_json()), "the predictions are where it ran"),
        (lambda found: (prune_runs(predictions=True), found)[1], "the predictions were removed"),
    ],
)
def test_what_was_not_kept_is_said_in_a_sentence(home, lose, reason):
    found = lose(run("iris"))
    said = collect_diagrams(found)
    assert not said.drawn
    (sentence,) = said.missing
    assert sentence.startswith(f"No diagram of iris/gbdt: {reason}")
    assert sentence.rstrip(".").replace("'", "&#x27;") in build_document(found, "comparison").to_html()
    with pytest.raises(ConfigError, match=f"^No diagram of iris/gbdt: {reason}"):
        found.plot("reliability")


def test_a_diagram_of_another_task_is_refused(home):
    with pytest.raises(ConfigError, match="the chart 'coverage' needs a quantile task"):
        run("iris").plot("coverage")


def test_rows_of_a_group_are_one_witness(home):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 10)
    x, effect = rng.normal(size=(300, 2)), rng.normal(size=30)[group]
    frame = {"x0": x[:, 0], "x1": x[:, 1], "who": group, "y": x[:, 0] + 3 * effect}
    by_row = run(pd.DataFrame(frame).drop(columns="who"), target="y", seeds=5)
    by_group = run(pd.DataFrame(frame), target="y", split="group:who", seeds=5)
    widths = []
    for found in (by_row, by_group):
        bins = collect_diagrams(found).drawn[0].panels[0].bins
        widths.append(np.mean([one.high - one.low for one in bins if one.low is not None]))
    assert widths[1] > 1.5 * widths[0]


@pytest.fixture(scope="module")
def drawn_page(tmp_path_factory):
    """Diagrams of every kind, with three panels, a name that is too long for one, and numbers with many digits."""
    folder = tmp_path_factory.mktemp("drawn")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    frame["y"] = 123456.789 * (frame["a"] + frame["b"] + rng.normal(size=200)) - 5e6
    variants = {"with-a-name-that-is-long": TrainingConfig(n_estimators=3), "b": FEW}
    options = {"executor": shared_pool(), "seeds": 2, "home": folder}
    found = [run(name, home=folder) for name in DATASETS]
    found.append(run(frame, target="y", training=None, variants=variants, **options))
    results = [result for one in found for result in one.results]
    diagrams = [diagram for one in found for diagram in collect_diagrams(one).drawn]
    path = folder / "page.html"
    document = build_document(ResultCollection(results), "comparison")
    path.write_text(document.model_copy(update={"diagrams": tuple(diagrams), "undrawn": ()}).to_html())
    return path


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_text_of_a_diagram_is_cut_off_or_covered(open_page, drawn_page, width, scheme):
    page = open_page(drawn_page, viewport={"width": width, "height": 900}, color_scheme=scheme).page
    assert page.locator("#calibration figure").count() == 5
    assert [
        fault for fault in faults(page) if "residuals" in fault or "reliability" in fault or "coverage" in fault
    ] == []
