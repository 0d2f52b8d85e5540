"""The page of a history in a real browser: headless Chromium without a network."""

from itertools import chain

import pytest

from boosters_eval.programs.history.report import build_report
from browser import faults_on_paper, unfolded_faults
from histories import a_history, a_series, an_entry

HOSTILE = "<script>alert(1)</script>\"' & a_rather_long_name_of_a_benchmark_that_somebody_gave/it"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("histories")
    hostile = [
        a_series([0.5 + (i > 5)], entry=an_entry(i, git_sha=f"<b>{i:09}", machine_label=HOSTILE), config=HOSTILE,
                 target="<b>x</b>", version=f"1.{i}<i>")
        for i in range(12)
    ]  # fmt: skip
    for name, series in {
        "story": chain(a_history(), a_history(12, seed=2, machine="m2")),
        "long": a_history(150, targets=("boosters",)),
        "hostile": hostile,
        "quiet": a_history(3),
        "one": [a_series([0.5])],
    }.items():
        (folder / f"{name}.html").write_text(build_report(series).to_html(), encoding="utf-8")
    return folder


@pytest.fixture
def visit(open_page, pages):
    return lambda name="story", **options: open_page(pages / f"{name}.html", **options)


@pytest.mark.parametrize("name", ["story", "hostile", "one"])
def test_the_page_opens_offline_and_names_stay_text(visit, name):
    assert visit(name).side_effects() == []


def test_steps_come_first_with_both_levels_and_the_commit(visit):
    seen = visit()
    assert seen.facts() == {"Runs": "40", "Series": "12", "Changes": "4", "For the worse": "4", "Machines": "2"}
    assert seen.page.locator("main section").first.get_attribute("id") == "steps"
    commit = an_entry(20).git_sha[:8]
    assert seen.column("#steps", 1) == [commit, commit, *[an_entry(6).git_sha[:8]] * 2]
    assert seen.column("#steps", 9)[0] == "+0.80 %"
    figure = seen.page.locator("#lines figure[data-name^='california/gbdt boosters train_time_s']").first
    assert f"worse since {commit}" in figure.locator("figcaption").inner_text()
    assert figure.locator(".v.worse title").text_content().startswith(f"Worse since {commit}, after ")
    described = figure.locator("svg[role=img]").get_attribute("aria-label")
    assert described.startswith("Train time (s) of boosters on california/gbdt, 40 runs on AMD EPYC, 8 cores: ")
    assert "Worse since" in described


def test_a_step_is_drawn_between_its_runs_and_its_levels_lie_on_them(visit):
    seen = visit()
    figure = seen.page.locator("#lines figure[data-name^='california/gbdt boosters train_time_s']").first

    def drawn(selector, *names):
        read = f"all => all.map((one) => {list(names)}.map((name) => Number(one.getAttribute(name))))"
        return figure.locator(selector).evaluate_all(read)

    runs = [x for (x,) in drawn("circle.mean", "cx")]
    ((at,),) = drawn("line.step", "x1")
    assert runs[19] < at < runs[20]
    before, after = drawn("line.level", "x1", "x2", "y1")
    assert [*before[:2], *after[:2]] == [runs[0], runs[19], runs[20], runs[39]]
    assert before[2] > after[2]  # slower is higher
    assert figure.locator("line.whisker").count() == 40


def test_intervals_that_would_hide_the_values_are_a_band(visit):
    charts = visit().page.locator("#lines figure[data-name^='california/gbdt boosters']")
    drawn = {
        "RMSE": charts.filter(
            has_text="RMSE: the mean of 5 splits per run, with its 95 % interval, which is wider"
        ).first,
        "times": charts.filter(has_text="Train time").first,
    }
    marks = {name: [one.locator(kind).count() for kind in (".whisker", ".area")] for name, one in drawn.items()}
    assert marks == {"RMSE": [0, 1], "times": [40, 0]}


@pytest.mark.parametrize(("name", "last"), [("story", 39), ("quiet", 2)])
def test_the_latest_run_is_named_on_the_axis(visit, name, last):
    ticks = visit(name).page.locator("#lines figure").first.locator("text.tick").all_text_contents()
    assert an_entry(last).git_sha[:8] in ticks


def test_a_new_version_is_marked_and_machines_have_cards_of_their_own(visit):
    seen = visit()
    figure = seen.page.locator("#lines figure[data-name^='california/gbdt lightgbm rmse']").first
    assert figure.locator("line.version").count() == 1
    assert "4.7.0" in figure.locator("text.tick").all_text_contents()
    assert [text.split("on ", 1)[1] for text in seen.page.locator("#lines .card h3.title").all_inner_texts()] == [
        "AMD EPYC, 8 cores",
        "Apple M2, 8 cores",
    ] * 2


def test_lines_and_steps_can_be_filtered_and_numbers_unfolded_by_keyboard(visit):
    seen = visit()
    seen.page.get_by_label("Filter series").fill("lightgbm apple")
    assert seen.page.locator("#lines .card:visible").count() == 1
    seen.page.get_by_label("Filter changes").fill("rmse")
    assert seen.page.locator("#steps tbody tr:visible").count() == 2
    fold = seen.page.locator("#lines .card:visible summary", has_text="12 runs")
    fold.focus()
    seen.page.keyboard.press("Enter")
    table = seen.page.get_by_role("region", name="Runs of lightgbm on california/gbdt, Apple M2, 8 cores")
    assert table.locator("tbody tr").count() == 12
    assert table.locator("tbody tr").first.locator("th").first.inner_text() == an_entry(11).git_sha[:8]
    assert seen.page.evaluate("() => document.activeElement.tagName") == "SUMMARY"


def test_many_runs_are_a_trace_with_a_band_and_a_short_table(visit):
    seen = visit("long")
    figure = seen.page.locator("#lines figure").first
    assert (figure.locator("circle").count(), figure.locator("polygon.area").count()) == (0, 1)
    assert len(figure.locator("polyline.trace").get_attribute("points").split()) == 150
    seen.page.locator("#lines summary", has_text="The latest 50 of 150 runs").click()
    assert seen.page.locator("#lines details tbody tr:visible").count() == 50


def test_without_a_step_the_page_says_so(visit):
    seen = visit("quiet")
    assert (
        seen.page.locator("#summary .headline").inner_text()
        == "No change can be detected yet: that takes 10 comparable runs, and there are 3 at most."
    )
    assert seen.page.locator("#steps").count() == 0
    assert "too few runs to detect a change" in seen.page.locator("#lines figcaption").first.inner_text()
    seen = visit("story")
    assert "no change detected" in seen.page.locator("#lines figcaption", has_text="MAE").first.text_content()
    rule = seen.page.locator("#notes li").first.inner_text().replace("\u00a0", " ")
    assert "one is reported in at most 1 % of cases" in rule
    assert "a machine that is slower for a few runs, looks like a change too" in rule


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("story", 1280, "light"),
        ("story", 400, "dark"),
        ("hostile", 400, "light"),
        ("long", 1280, "dark"),
        ("one", 400, "light"),
    ],
)
def test_nothing_is_cut_off_or_on_each_other(visit, name, width, scheme):
    seen = visit(name, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert unfolded_faults(seen.page) == []


def test_no_word_of_the_steps_is_broken_on_paper(visit):
    seen = visit("story", viewport={"width": 720, "height": 1000})
    seen.page.emulate_media(media="print")
    words = seen.page.locator("#steps tbody tr").first.locator("td:nth-child(2), .verdict, td.num")
    line = "one => { const r = document.createRange(); r.selectNodeContents(one); return r.getClientRects().length; }"
    assert {words.nth(index).evaluate(line) for index in range(words.count())} == {1}


def test_the_page_fits_on_paper(visit):
    assert faults_on_paper(visit("hostile", viewport={"width": 720, "height": 1000}).page) == []
