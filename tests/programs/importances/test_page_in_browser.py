"""The page on importances in a real browser: headless Chromium without a network."""

import numpy as np
import pytest

from boosters_eval.programs.importances.document import build_document
from browser import faults_on_paper, unfolded_faults
from explained import Cells
from factories import RECORDED_AT

HOSTILE = "<script>alert(1)</script>\"' & a_rather_long_name_of_a_column_that_somebody_gave/it"


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    named = Cells(folder, names=(HOSTILE, "<b>x</b>", "rooms", "noise", "latitude"), categorical=(2,))
    wide = Cells(
        folder,
        names=tuple(f"feature_{i:02}" for i in range(50)),
        weights=np.linspace(0.1, 3, 50),
        x=np.random.default_rng(0).normal(size=(400, 50)).astype(np.float32),
    )
    runs = {
        "story": Cells(folder).grid(broken=("gamma",), own=0.3),
        "hostile": named.grid(("<i>a</i>", "beta", HOSTILE), seeds=2, own=0.2),
        "wide": wide.grid(("a", "bb", "ccc", "dddd", "eeeee"), seeds=2, own=0.1),
        "one": Cells(folder, outputs=3).grid(("alpha",), seeds=1),
    }
    return {name: build_document(run, now=RECORDED_AT) for name, run in runs.items()}


@pytest.fixture(scope="module")
def pages(documents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("importances")
    for name, document in documents.items():
        (folder / f"{name}.html").write_text(document.render("html"), encoding="utf-8")
    return folder


@pytest.fixture
def visit(open_page, pages):
    return lambda name="story", **options: open_page(pages / f"{name}.html", **options)


@pytest.mark.parametrize("name", ["story", "hostile", "one"])
def test_the_page_opens_offline_and_names_stay_text(visit, name):
    assert visit(name).side_effects() == []


def test_the_answer_comes_first_and_the_library_that_fails_is_told(visit):
    seen = visit()
    assert seen.page.locator(".headline").inner_text().startswith("Do they agree for the same reasons?")
    assert "gamma: attributions do not add up" in seen.page.locator("#summary li").first.inner_text()
    assert seen.facts()["Libraries that fail a check"] == "1"
    parts = seen.page.locator("main section").evaluate_all("all => all.map((one) => one.id)")
    assert parts == [
        "checks", "importances", "agreement", "predictions", "attributions", "rows", "notes", "environment",
        "reproduce",
    ]  # fmt: skip
    assert seen.column("#checks", 1) == ["alpha", "beta", "gamma *"]


def test_dots_of_all_libraries_share_order_and_scale(visit):
    seen = visit()
    card = seen.page.locator("#importances article", has_text="importance by gain")
    figures = card.locator("figure")
    assert figures.count() == 3
    texts = [figures.nth(i).locator("text.name").all_text_contents() for i in range(3)]
    assert texts[0] == texts[1] == texts[2] == seen_order(card)
    ticks = [figures.nth(i).locator("text.tick").all_text_contents() for i in range(3)]
    assert ticks[0] == ticks[1] == ticks[2]
    assert [figures.nth(i).locator("text.heading").text_content() for i in range(3)] == ["alpha", "beta", "gamma *"]
    assert [figures.nth(i).locator("line.bar").count() for i in range(3)] == [5, 5, 5]
    described = figures.first.locator("svg[role=img]").get_attribute("aria-label")
    assert described.startswith("Importance by gain on toy/gbdt of alpha: income ")


def seen_order(card):
    return card.locator("tbody th").all_inner_texts()


def test_the_heat_map_has_each_library_with_itself_on_its_diagonal(visit, documents):
    (found,) = documents["story"].findings
    card = visit().page.locator("#agreement article", has_text="agreement by gain")
    titles = card.locator("rect.heat title").all_text_contents()
    own = {one.a: one.tau for one in found.agreement if one.kind == "gain" and one.own}
    assert len(titles) == 9
    for name, tau in own.items():
        assert f"{name}{' *' if name == 'gamma' else ''}: {tau:.2f}" in titles


def test_swarms_show_sound_libraries_on_one_scale(visit):
    seen = visit()
    figures = seen.page.locator("#attributions figure")
    assert figures.locator("text.heading").all_text_contents() == ["alpha", "beta"]
    ticks = [figures.nth(i).locator("text.tick").all_text_contents() for i in range(2)]
    assert ticks[0] == ticks[1]
    drawn = figures.first.locator("path.bee").evaluate_all(
        "all => all.map((one) => one.getAttribute('d').split('M').length - 1).reduce((a, b) => a + b, 0)"
    )
    assert drawn == 5 * 120 + 7  # every row of five features, and the legend
    assert "Not drawn, because a check fails: gamma." in seen.page.locator("#attributions .notes").inner_text()


def test_rows_unfold_by_keyboard_and_their_numbers_are_those_of_the_json(visit, documents):
    (found,) = documents["story"].findings
    seen = visit()
    rows = [row for row in found.disputed if row.by == "predictions"]
    table = seen.page.get_by_role("region", name="Rows by predictions")
    assert table.locator("tbody tr > :first-child").all_inner_texts() == [str(row.row) for row in rows]
    seen.page.locator("#rows summary").first.focus()
    seen.page.keyboard.press("Enter")
    fold = seen.page.get_by_role("region", name=f"Row {rows[0].row} by predictions")
    name, value = fold.locator("tbody tr").first.locator("th, td").all_inner_texts()[:2]
    assert float(value) == pytest.approx(rows[0].values[name], rel=1e-6)


def test_values_of_the_tables_are_those_of_the_json(visit, documents):
    (found,) = documents["story"].findings
    card = visit().page.locator("#importances article", has_text="importance by SHAP")
    shown = card.locator("tbody tr").evaluate_all(
        "all => all.map((row) => [row.cells[0].textContent, ...[...row.cells].slice(1).map((c) => +c.dataset.value)])"
    )
    shares = {(one.feature, one.library): one.share for one in found.importances if one.kind == "shap"}
    assert shown == [
        [name, *(pytest.approx(shares[name, library]) for library in found.libraries)] for name, *_ in shown
    ]


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("story", 1280, "light"),
        ("story", 360, "dark"),
        ("hostile", 360, "light"),
        ("hostile", 1280, "dark"),
        ("wide", 1280, "light"),
        ("wide", 360, "dark"),
        ("one", 360, "light"),
    ],
)
def test_nothing_is_cut_off_or_on_each_other(visit, name, width, scheme):
    seen = visit(name, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert unfolded_faults(seen.page) == []


def test_colors_follow_the_scheme(visit):
    color = "one => getComputedStyle(one).stroke"
    drawn = {
        scheme: visit(color_scheme=scheme).page.locator("path.bee.q0").first.evaluate(color)
        for scheme in ("light", "dark")
    }
    assert drawn["light"] != drawn["dark"]


def test_the_page_fits_on_paper_that_lies_on_its_side(visit):
    page = visit("hostile", viewport={"width": 1000, "height": 720}).page
    assert faults_on_paper(page) == []
    page.emulate_media(media="print")
    wrap = "all => [...new Set(all.map((one) => getComputedStyle(one).whiteSpace))]"
    assert page.locator("td.num").evaluate_all(wrap) == ["nowrap"]  # a number is not broken in the middle
    page.emulate_media(media="screen")


def test_what_is_folded_is_unfolded_on_paper_alone(visit):
    page = visit().page
    opened = "all => all.filter((one) => one.open).length"
    details = page.locator("details")
    before = details.evaluate_all(opened)
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert details.evaluate_all(opened) == details.count() > before
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert details.evaluate_all(opened) == before
