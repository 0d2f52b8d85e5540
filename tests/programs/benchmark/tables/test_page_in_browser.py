"""The HTML report in a real browser: headless Chromium without a network."""

import csv
import re
import time
from xml.etree import ElementTree as ET

import pytest

from boosters_eval.core.text import clean_csv_cell
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.document import build_document
from browser import contrast, faults

LONG = ("growth_strategy=leafwise,max_depth=unlimited", "growth_strategy=depthwise,max_depth=6")
FORMULAS = ("=1+1", "+2", "-x", "@a", "  =x", "-0.5 ± 0.1", 'a,"b"', "plain")


@pytest.fixture(scope="module")
def files(sample, timed, hostile, ablation, crowd, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    formulas = [
        one.model_copy(update={"library": name})
        for one in sample.filter(library="boosters").results
        for name in FORMULAS
    ]
    for name, collection in {
        "sample": sample,
        "timed": timed,
        "hostile": hostile,
        "ablation": ablation,
        "one": crowd(1),
        "many": crowd(3, timed=True, seeds=3),
        "variants": crowd(1, variants=LONG, name="a_file_of_a_user_with_a_rather_long_name_{}", seeds=3),
        "formulas": ResultCollection(formulas).filter(config="california/gbdt"),
    }.items():
        (folder / f"{name}.html").write_text(build_document(collection, "comparison").to_html(), encoding="utf-8")
    return folder


@pytest.fixture
def visit(open_page, files):
    return lambda name="sample", **options: open_page(files / f"{name}.html", **options)


CARD = "#results .card[data-search^='california']"


@pytest.mark.parametrize("name", ["sample", "hostile", "ablation"])
def test_the_page_opens_offline_asks_for_nothing_and_complains_of_nothing(visit, name):
    seen = visit(name)
    assert seen.page.locator("h1").is_visible()
    assert [url.rpartition("/")[2] for url in seen.requests] == [f"{name}.html"]
    assert seen.complaints == []


def test_the_policy_forbids_requests_and_foreign_scripts(visit):
    seen = visit()
    outcome = seen.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s); return window.ran === undefined; }"
    )
    assert outcome
    assert "Content Security Policy" in seen.complaints[0]
    blocked = seen.page.evaluate("() => fetch('http://127.0.0.1:9/').then(() => 'sent', (e) => e.name)")
    assert blocked == "TypeError"
    assert any("connect" in text for text in seen.complaints[1:])


@pytest.mark.parametrize("name", ["one", "many", "variants", "sample"])
def test_nothing_overflows_overlaps_or_is_cut_off_at_any_width_in_any_colors(visit, name):
    page = visit(name, viewport={"width": 1280, "height": 900}).page
    page.evaluate("() => document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    others = ((400, "light"), (1280, "dark")) if name == "many" else ()  # colors hardly move anything
    for width, scheme in ((1280, "light"), (400, "dark"), *others):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert faults(page) == [], (width, scheme)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 900})
    assert [fault for fault in faults(page) if not fault.startswith("too small")] == []
    page.emulate_media(media="screen", color_scheme="light")  # the page is used again
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("name", ["many", "sample"])
def test_a_printed_report_has_the_answer_on_page_one_and_at_most_a_page_per_data_set(visit, name):
    page = visit(name, viewport={"width": 718, "height": 1047}).page  # A4 within Chromium's margins
    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    answer = page.locator("#summary .headline").bounding_box()
    assert answer["y"] + answer["height"] < 1047
    heights = [card.bounding_box()["height"] for card in page.locator("#results .card").all()]
    assert max(heights) < 1047, heights
    assert not page.locator("#cells").is_visible()
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")


def test_the_answer_and_the_leaderboard_come_first(visit):
    page = visit("many").page
    top = page.locator("#summary")
    assert top.locator(".headline").inner_text().startswith("Which: boosters, on 2 of 3 data sets (best on 1,")
    assert "But: 1 cell of 45 failed (sklearn 1)." in top.locator("li").all_inner_texts()
    assert top.locator("tbody tr").first.inner_text().split()[0] == "boosters"
    assert top.bounding_box()["y"] < page.locator("#results").bounding_box()["y"]


def test_the_whole_cell_of_a_heading_sorts(visit):
    seen = visit()
    heading = seen.page.locator(f"{CARD} th", has_text="RMSE")
    heading.click(position={"x": heading.bounding_box()["width"] - 3, "y": 2})
    assert heading.get_attribute("aria-sort") == "ascending"


def test_a_table_is_saved_as_csv_in_which_nothing_is_a_formula(visit, tmp_path):
    page = visit("formulas").page
    with page.expect_download() as saved:
        page.locator("#results .save").first.click()
    assert saved.value.suggested_filename == "boosters-eval-california-gbdt.csv"
    saved.value.save_as(tmp_path / "table.csv")
    rows = list(csv.reader((tmp_path / "table.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0][:3] == ["Library", "RMSE ↓", "RMSE ↓ (as shown)"]
    assert {row[0] for row in rows[1:]} == {clean_csv_cell(name.strip()) for name in FORMULAS}
    assert float(rows[1][1]) == pytest.approx(0.4521)
    assert rows[1][2] == "0.4521 ± 0.0044"


def test_a_chart_is_saved_as_a_picture_that_needs_no_style_sheet(visit, tmp_path):
    page = visit("many").page
    with page.expect_download() as saved:
        page.locator("figure .save").nth(1).click()
    assert saved.value.suggested_filename == "boosters-eval-data-00-gbdt-logloss-differences.svg"
    saved.value.save_as(tmp_path / "chart.svg")
    picture = ET.parse(tmp_path / "chart.svg").getroot()
    names = [text for text in picture.iter("{http://www.w3.org/2000/svg}text") if text.text == "xgboost"]
    assert names[0].get("fill") == "rgb(27, 33, 38)"
    assert not any(part.get("class") for part in picture.iter())


def test_hostile_names_give_harmless_file_names(visit):
    page = visit("hostile").page
    for control in (page.locator("#results .save").first, page.locator("figure .save").first):
        with page.expect_download() as saved:
            control.click()
        assert re.fullmatch(r"boosters-eval-[A-Za-z0-9-]+\.(csv|svg)", saved.value.suggested_filename)


def test_cells_are_found_by_their_words_and_open_when_few_are_left(visit):
    page = visit("many").page
    field = page.get_by_label("Filter cells")
    field.fill("data_00 sklearn WorkerDied")
    assert page.locator("#cells output").inner_text() == "1 of 45"
    assert page.locator("#cells details:visible").count() == 1
    assert page.locator("#cells tbody tr:visible").inner_text().startswith("2716\t")
    field.fill("")
    assert page.locator("#cells details:visible").count() == 15


def test_a_click_sorts_by_number_and_a_second_one_turns_it_round(visit):
    seen = visit()
    heading = seen.page.locator(f"{CARD} th", has_text="RMSE")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert seen.column(CARD, 1) == ["xgboost", "boosters", "lightgbm"]
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert seen.column(CARD, 1) == ["lightgbm", "boosters", "xgboost"]


def test_the_keyboard_sorts_too(visit):
    seen = visit()
    button = seen.page.locator(f"{CARD} th", has_text="Library").get_by_role("button")
    button.focus()
    seen.page.keyboard.press("Enter")
    assert seen.column(CARD, 1) == ["boosters", "lightgbm", "xgboost"]
    seen.page.keyboard.press("Space")
    assert seen.column(CARD, 1) == ["xgboost", "lightgbm", "boosters"]


def test_missing_values_are_sorted_last_both_ways(open_page, tmp_path, sample):
    lone = ResultCollection(sample.results, [sample.errors[0].model_copy(update={"library": "aaa"})])
    path = tmp_path / "page.html"
    path.write_text(build_document(lone, "quality").to_html(), encoding="utf-8")
    seen = open_page(path)
    card = "#results .card[data-search^='breast']"
    button = seen.page.locator(f"{card} th", has_text="Log loss").get_by_role("button")
    for _ in range(2):
        button.click()
        assert seen.column(card, 1)[-1] == "aaa"


def test_filtering_hides_what_does_not_match_and_counts_the_rest(visit):
    seen = visit()
    field = seen.page.get_by_label("Filter benchmarks")
    field.fill("GBDT catboost")
    cards = seen.page.locator("#results .card")
    assert [cards.nth(i).is_visible() for i in range(cards.count())] == [False, True, False]
    assert seen.page.locator("#results .group:visible").count() == 1
    assert seen.page.locator("#results output").inner_text() == "1 of 3"
    field.fill("")
    assert seen.page.locator("#results .card:visible").count() == 3
    seen.page.get_by_label("Filter pairs").fill("worse")
    assert seen.page.locator("#tests tbody tr:visible").count() == 1


def test_fold_outs_open_by_mouse_and_keyboard(visit):
    seen = visit()
    error = seen.page.locator("#errors details").first
    assert not error.locator("pre").is_visible()
    error.locator("summary").click()
    assert "Timeout: <60 s>" in error.locator("pre").inner_text()
    parameters = seen.page.locator("#parameters details", has_text="catboost")
    parameters.locator("summary").focus()
    seen.page.keyboard.press("Enter")
    assert parameters.get_by_text('"catboost:binary"').is_visible()


def test_everything_can_be_reached_with_the_tab_key(visit):
    seen = visit()
    reached = set()
    for _ in range(120):
        seen.page.keyboard.press("Tab")
        reached.add(seen.page.evaluate("() => document.activeElement.tagName + (document.activeElement.id || '')"))
    assert {"BUTTONtheme", "A", "INPUT", "BUTTON", "SUMMARY", "DIV"} <= reached


def test_names_stay_text(visit):
    seen = visit("hostile")
    assert '<script>alert("x")</script>' in seen.page.title()
    assert '<script>alert("x")</script>' in seen.page.locator("#results h3.title").inner_text()
    assert seen.page.locator("script").count() == 1
    seen.page.get_by_label("Filter cells").fill("<script>")
    assert seen.page.locator("#cells details:visible").count() > 0
    assert seen.dialogs == []


def test_light_and_dark_follow_the_system_and_the_button(visit):
    background = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = visit(color_scheme="light"), visit(color_scheme="dark")
    white, black = light.page.evaluate(background), dark.page.evaluate(background)
    assert white != black
    light.page.locator("#theme").click()
    assert light.page.evaluate(background) == black
    light.page.locator("#theme").click()
    assert light.page.evaluate(background) == white


def test_the_chosen_colors_are_kept(visit):
    seen = visit(color_scheme="light")
    seen.page.locator("#theme").click()
    deadline = time.monotonic() + 10
    while True:  # the browser writes its storage in the background, so an early reload may come too soon
        seen.page.reload()
        if seen.page.evaluate("() => document.documentElement.dataset.theme") == "dark":
            break
        assert time.monotonic() < deadline


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(visit, scheme):
    seen = visit(color_scheme=scheme)
    style = seen.page.evaluate(
        "() => { const s = getComputedStyle(document.documentElement);"
        "return Object.fromEntries(['page','card','faint','ink','soft','link','good','good-back','bad',"
        "'s0','s1','s2','s3','s4','s5','s6','s7']"
        ".map((n) => [n, s.getPropertyValue('--' + n).trim()])); }"
    )
    pairs = [(text, back) for text in ("ink", "soft", "link") for back in ("page", "card", "faint")]
    for text, back in [*pairs, ("good", "good-back"), ("good", "card"), ("bad", "card"), ("s4", "card")]:
        assert contrast(style[text], style[back]) >= 4.5, (text, back)
    for mark in range(8):
        assert contrast(style[f"s{mark}"], style["card"]) >= 3, mark


@pytest.mark.parametrize("name", ["sample", "hostile"])
def test_a_narrow_screen_needs_no_sideways_scrolling_and_keeps_text_readable(visit, name):
    seen = visit(name, viewport={"width": 400, "height": 800})
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == 400
    heights = seen.page.evaluate(
        "() => [...document.querySelectorAll('svg text')].map((t) => t.getBoundingClientRect().height)"
    )
    assert min(height for height in heights) >= 8.5


def test_pictures_are_described_and_fields_are_labeled(visit):
    seen = visit("timed")
    pictures = seen.page.locator("figure svg[role=img]")
    assert pictures.count() == 21
    labels = [pictures.nth(i).get_attribute("aria-label") for i in range(pictures.count())]
    assert labels[0].startswith("RMSE of california/gbdt: boosters 0.4521 ± 0.0044; ")
    assert seen.page.locator("input:not([aria-label])").count() == 0


def test_times_without_timing_mode_have_no_ratios_and_their_picture_says_why(visit):
    indicative, timed = visit(), visit("timed")
    captions = indicative.page.locator("figcaption").all_inner_texts()
    assert sum("indicative only: not taken with 'timing_mode'" in text for text in captions) == 3
    assert not any("Training time over" in text for text in captions)
    captions = timed.page.locator("figcaption").all_inner_texts()
    assert not any("indicative" in text for text in captions)
    assert any("Training time over that of boosters" in text for text in captions)


def test_rows_of_the_benchmarks_stay_low_on_a_narrow_screen(visit):
    seen = visit(viewport={"width": 400, "height": 800})
    rows = seen.page.locator("#benchmarks tbody tr")
    assert max(rows.nth(i).bounding_box()["height"] for i in range(rows.count())) < 70


@pytest.mark.parametrize("name", ["sample", "many", "variants"])
def test_the_benchmarks_fit_on_a_wide_screen(visit, name):
    table = visit(name, viewport={"width": 1280, "height": 900}).page.locator("#benchmarks .scroll")
    assert table.evaluate("(box) => box.scrollWidth <= box.clientWidth")


def test_every_seed_is_a_dot_that_names_itself(visit):
    seen = visit()
    dots = seen.page.locator(f"{CARD} figure").first.locator("circle.dot title")
    assert dots.count() == 15
    assert re.fullmatch(r"seed 42: 0\.\d+", dots.first.text_content())


def test_without_scripts_everything_is_still_there(visit):
    seen = visit(java_script_enabled=False)
    assert seen.page.locator("#results table").first.is_visible()
    assert not seen.page.get_by_label("Filter benchmarks").is_visible()
    assert seen.page.locator(".headline").is_visible()
    assert seen.page.locator(".save").count() == 0
    seen.page.locator("#errors summary").first.click()
    assert seen.page.locator("#errors pre").first.is_visible()
    seen.page.locator("#cells summary").first.click()
    assert seen.page.locator("#cells tbody tr").first.is_visible()


def test_the_search_for_faults_finds_them(visit):
    page = visit("sample").page
    page.evaluate(
        "() => { const [first, second] = document.querySelectorAll('figure text.tick');"
        "second.setAttribute('x', first.getAttribute('x'));"
        "document.querySelector('figure text.name').setAttribute('x', 8);"
        "const main = document.querySelector('main'), clip = document.createElement('p');"
        "clip.style.overflow = 'hidden'; clip.textContent = 'x'.repeat(900); main.append(clip, 'x'.repeat(900)); }"
    )
    kinds = {fault.partition(":")[0].partition(" in ")[0] for fault in faults(page)}
    assert kinds == {"beyond its box", "clipped", "on each other", "cut off"}


def test_a_saved_plot_fits_the_window(open_page, crowd, tmp_path):
    path = crowd(2, seeds=3).plot("forest").save(tmp_path / "plot.html")
    assert faults(open_page(path, viewport={"width": 700, "height": 900}).page) == []
