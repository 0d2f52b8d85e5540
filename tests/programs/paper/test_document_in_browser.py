"""The page of a comparison in a real browser."""

import pytest


@pytest.fixture
def visit(open_page, comparison, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(comparison.to_html(), encoding="utf-8")
    return lambda **options: open_page(path, **options)


def test_the_page_opens_offline_and_names_stay_text(visit):
    seen = visit()
    assert len(seen.requests) == 1
    assert (seen.complaints, seen.dialogs) == ([], [])
    assert seen.page.locator("header .lead").inner_text().startswith("Revisiting <b>Models</b> (arXiv:2106.11959). Run")
    assert seen.page.locator("#summary .headline").inner_text().startswith("✗ Not Reproduced: 2 of 4 primary values")
    assert seen.page.locator("main b").count() == 0
    assert seen.page.locator("figure text.name").first.text_content() == "Default <hyperparameters> / XGBoost"


def test_the_paper_and_ours_are_drawn_over_what_is_accepted(visit):
    seen = visit()
    figure = seen.page.locator(".card[data-search^='California'] figure")
    assert figure.locator("rect.band").count() == 3
    titles = figure.locator("title").all_text_contents()
    assert titles[2:4] == [
        "Default <hyperparameters> / CatBoost, Paper: 0.430 ± 0.0007",
        "Default <hyperparameters> / CatBoost, Ours: 0.4440 ± 0.0088",
    ]
    bands = [figure.locator("rect.band").nth(i).bounding_box() for i in range(3)]
    ours = [figure.locator("circle.mean:has(title)").nth(i).bounding_box() for i in range(3)]
    inside = [b["x"] <= o["x"] + o["width"] / 2 <= b["x"] + b["width"] for b, o in zip(bands, ours, strict=True)]
    assert inside == [True, False, False]  # as the table beside it says
    assert seen.column(".card[data-search^='California']", 7) == [
        "~ Close pass",
        "⚠ Deviation fail",
        "✗ Significant fail",
    ]
    assert "the band is what is accepted" in figure.locator("figcaption").inner_text()
    assert figure.locator("svg[role=img]").get_attribute("aria-label").startswith("RMSE ↓ of California: RMSE. Default")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_needs_no_sideways_scrolling_and_keeps_text_readable(visit, scheme):
    seen = visit(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert seen.page.evaluate("() => document.documentElement.scrollWidth") == 390
    heights = seen.page.evaluate(
        "() => [...document.querySelectorAll('svg text')].map((t) => t.getBoundingClientRect().height)"
    )
    assert min(heights) >= 8.5
    facts = seen.page.locator(".facts dd")
    clipped = facts.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length")
    assert clipped == 0
