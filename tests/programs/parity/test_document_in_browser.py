"""The page with its matrices in a real browser: headless Chromium without a network."""

from __future__ import annotations

import pytest

import parity_rows as given
from boosters_eval.programs.parity.findings import build_parity_report, reproduce_parts
from browser import contrast

DECLARED = {"pls": ("sklearn", "pls4all", "octave.plsregress")}
COLOURS = ("exact", "near", "edge", "habit", "chance", "apart", "none")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboards")
    for name, rows in (("story", given.story()), ("hostile", given.hostile())):
        page = build_parity_report(rows, DECLARED).to_html()
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture
def visit(open_page, pages):
    return lambda name="story", **options: open_page(pages / f"{name}.html", **options)


def cell(seen, backend, method="pls"):
    return seen.page.locator(f'button[aria-label^="{backend}, {method}: "]')


@pytest.mark.parametrize("name", ["story", "hostile"])
def test_it_opens_offline_asks_for_nothing_and_complains_of_nothing(visit, name):
    seen = visit(name)
    assert seen.page.locator(".cell").first.is_visible()
    seen.page.evaluate("() => document.querySelectorAll('.cell').forEach((c) => { c.click(); panel.close(); })")
    assert [url.rpartition("/")[2].partition("#")[0] for url in seen.requests] == [f"{name}.html"]
    assert (seen.complaints, seen.dialogs) == ([], [])
    assert seen.page.locator("img").count() == 0
    assert seen.page.locator("script").count() == 2


def test_a_cell_says_verdict_time_and_speed_up_and_what_was_not_run_is_there(visit):
    seen = visit()
    assert cell(seen, "sklearn").inner_text().split("\n") == ["bit_exact", "22.7 ms · reference"]
    assert cell(seen, "pls4all").inner_text().split("\n") == ["rounding", "0.526 ms · 43\u00d7"]
    assert cell(seen, "pls4all.sklearn").inner_text().split("\n")[-1] == "≠ main binding"
    assert cell(seen, "octave.plsregress").inner_text().split("\n") == ["NR", "not run"]
    assert cell(seen, "R.simpls").inner_text().split("\n") == ["NR", "not available"]
    assert cell(seen, "hang").inner_text().split("\n") == ["⏳", "timeout"]
    assert cell(seen, "segfault").inner_text().split("\n") == ["—", "SIGSEGV"]
    backgrounds = {
        word: seen.page.locator(f".cell[data-word={word}]").first.evaluate("(e) => getComputedStyle(e).backgroundColor")
        for word in ("bit_exact", "rounding", "known_defect", "convention", "cross_check", "divergent", "not_available")
    }
    assert len(set(backgrounds.values())) == len(backgrounds)


def test_the_selectors_choose_size_and_threads(visit):
    seen = visit()
    card = seen.page.locator(".matrix").first
    card.get_by_label("Size").select_option("2000x50")
    assert cell(seen, "pls4all").inner_text().split("\n")[1] == "4.21 ms · 43\u00d7"
    card.get_by_label("Threads").select_option("2 threads")
    assert cell(seen, "pls4all").inner_text().split("\n")[1] == "4.21 ms · 22\u00d7"
    cell(seen, "ikpls").click()
    assert "pls, 2000x50, 2 threads" in seen.page.locator("#panel h3").inner_text()


def test_the_panel_shows_samples_differences_versions_and_the_command(visit):
    seen = visit()
    cell(seen, "pls4all.sklearn").click()
    panel = seen.page.locator("#panel")
    shown = panel.inner_text()
    for text in (
        "It scales its columns to unit variance.",
        "relative_rmse 0.0660, tolerance 1e-12",
        "100 %",
        "divergent, max abs 2.13",
        "median of 7 runs, 8 with the warm start (adaptive-v1, ended by: max runs)",
        "1 asked for, 1 observed",
        "openblas 0.3.30",
        "4d53e10060cf4553",
    ):
        assert text in shown
    assert panel.locator("svg circle.scored").count() == 14  # of the cell and of its reference
    assert panel.locator("svg circle.warm").count() == 2
    assert panel.locator("svg circle title").nth(1).text_content() == "run 2: 2.08"
    assert panel.locator("svg").get_attribute("aria-label").startswith("pls4all.sklearn: 8 samples, reported 2.08 ms; ")
    row = next(row for row in given.story() if row.backend == "pls4all.sklearn")
    assert panel.locator("pre.command").inner_text() == " ".join(reproduce_parts(row))


def test_the_panel_of_a_failure_says_how_it_ended(visit):
    seen = visit()
    cell(seen, "segfault").click()
    assert seen.page.locator("#panel pre").first.inner_text() == "SIGSEGV: died (in fit)"
    assert seen.page.locator("#panel svg").count() == 0


def test_the_keyboard_reaches_every_cell_opens_it_and_comes_back(visit):
    seen = visit()
    cell(seen, "sklearn").focus()
    seen.page.keyboard.press("ArrowDown")
    focused = "() => document.activeElement.getAttribute('aria-label')"
    assert seen.page.evaluate(focused).startswith("pls4all, pls: rounding")
    seen.page.keyboard.press("Enter")
    assert seen.page.locator("#panel").is_visible()
    assert seen.page.evaluate("() => document.activeElement.textContent") == "Close"
    seen.page.keyboard.press("Escape")
    assert not seen.page.locator("#panel").is_visible()
    assert seen.page.evaluate(focused).startswith("pls4all, pls: rounding")
    assert seen.page.locator(".matrix").first.locator(".cell[tabindex='0']").count() == 1


def test_finding_and_highlighting(visit):
    seen = visit()
    seen.page.get_by_label("Find a method or backend").fill("onnx")
    assert seen.page.locator(".matrix:visible").count() == 1
    assert seen.page.locator(".matrix:visible .cell").count() == 1
    seen.page.get_by_label("Find a method or backend").fill("")
    chip = seen.page.locator(".chip[data-word=divergent]")
    chip.click()
    assert chip.get_attribute("aria-pressed") == "true"
    assert seen.page.locator(".cell:not(.dim)").count() == seen.page.locator(".cell[data-word=divergent]").count() == 1
    chip.click()
    assert seen.page.locator(".cell.dim").count() == 0


def test_a_link_opens_its_cell(visit):
    seen = visit()
    seen.page.locator(".matrix").first.get_by_label("Size").select_option("2000x50")
    cell(seen, "pls4all.sklearn").click()
    url = seen.page.url
    assert url.endswith("#cell=pls&pls4all.sklearn&2000x50&1%20thread")
    seen.page.goto("about:blank")
    seen.page.goto(url)
    assert "pls, 2000x50, 1 thread" in seen.page.locator("#panel h3").inner_text()
    assert seen.page.locator(".matrix").first.get_by_label("Size").input_value() == "2000x50"


@pytest.mark.parametrize("name", ["story", "hostile"])
def test_a_phone_needs_no_sideways_scrolling(visit, name):
    seen = visit(name, viewport={"width": 390, "height": 800})
    width = "() => document.documentElement.scrollWidth"
    assert seen.page.evaluate(width) == 390
    seen.page.locator(".cell").nth(1).click()
    assert seen.page.evaluate(width) == 390
    panel = seen.page.locator("#panel")
    assert panel.evaluate("(e) => [e.offsetWidth, e.scrollWidth]") == [390, 390]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_verdicts_have_enough_contrast(visit, scheme):
    seen = visit(color_scheme=scheme)
    style = seen.page.evaluate(
        "(names) => { const s = getComputedStyle(document.documentElement);"
        "return Object.fromEntries(names.map((n) => [n, s.getPropertyValue('--' + n).trim()])); }",
        [*COLOURS, *(f"{name}-back" for name in COLOURS), "ink", "soft", "card"],
    )
    for name in COLOURS:
        for text in (name, "ink", "soft"):
            assert contrast(style[text], style[f"{name}-back"]) >= 4.5, (text, name)
        assert contrast(style[name], style["card"]) >= 4.5, name


def test_without_scripts_the_page_says_where_the_cells_are_and_shows_the_rest(visit):
    seen = visit(java_script_enabled=False)
    assert seen.page.locator("noscript p").is_visible()
    assert seen.page.locator("#backends tbody tr").first.is_visible()
    assert seen.page.locator("#findings tbody tr").first.is_visible()


def test_a_matrix_of_very_many_cells_is_drawn_in_part_until_asked_for(open_page, tmp_path):
    rows = [given.parity_row(f"b{j}", method=f"m{i}", samples_ns=()) for i in range(105) for j in range(20)]
    path = tmp_path / "many.html"
    path.write_text(build_parity_report(rows).to_html(), encoding="utf-8")
    seen = open_page(path)
    assert seen.page.locator(".cell").count() == 2000
    seen.page.get_by_role("button", name="Show all 105 rows").click()
    assert seen.page.locator(".cell").count() == 2100
