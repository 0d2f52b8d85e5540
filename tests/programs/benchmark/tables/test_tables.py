"""From results to tables: rows, columns, highlights and notes."""

import io
import math

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

import factories
from boosters_eval.programs.benchmark.records import RunMetadata
from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.reports.terminal import print_document


def printed(report, width=160):
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    print_document(report.document(), console)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def cell(report, table, library, metric):
    found = next(t for t in report.tables if t.name == table)
    row = next(r for r in found.rows if r.label == library)
    return row.cells[[c.name for c in found.columns].index(metric)]


@pytest.mark.parametrize("name", ["sample", "ablation", "hostile"])
def test_every_rendering_is_as_the_golden_file_says(name, request, golden):
    report = build_tables(request.getfixturevalue(name))
    golden(f"{name}.terminal.txt", printed(report))
    golden(f"{name}.md", report.to_markdown())
    golden(f"{name}.csv", report.to_csv())
    golden(f"{name}.fragment.html", report._repr_html_() + "\n")


def test_a_significant_winner_is_best_and_a_tie_is_not(sample):
    report = build_tables(sample)
    assert cell(report, "breast_cancer/gbdt", "xgboost", "logloss").best
    assert not any(row.cells[0].best for row in report.tables[0].rows)


def test_without_significance_the_best_mean_is_highlighted(sample):
    report = build_tables(sample, require_significance=False)
    assert cell(report, "california/gbdt", "xgboost", "rmse").best
    assert not cell(report, "california/gbdt", "boosters", "rmse").best


def test_nothing_is_highlighted_on_request(sample):
    report = build_tables(sample, highlight=False, require_significance=False)
    assert not any(c.best for table in report.tables for row in table.rows for c in row.cells)


def test_welch_needs_intervals_that_do_not_overlap(sample):
    report = build_tables(sample, test="welch")
    assert cell(report, "breast_cancer/gbdt", "xgboost", "logloss").best
    assert not any(row.cells[0].best for row in report.tables[0].rows)
    assert report.test == "welch"


def test_variants_of_an_ablation_are_rows_of_one_table(ablation):
    (table,) = build_tables(ablation).tables
    assert table.row_names == ("Library", "Variant")
    assert [row.names for row in table.rows] == [("boosters", "depthwise"), ("boosters", "leafwise")]
    assert table.rows[1].cells[0].best


def variant(name, booster, index, rmse):
    config = f"d/{booster}-{name}"
    return factories.result(config, seed=index, value=rmse + index / 100, booster_type=booster, variant=name)


def test_boosters_that_are_themselves_varied_share_a_table():
    results = [variant(name, name, i, 1.0) for name in ("gbdt", "gblinear") for i in range(3)]
    (table,) = build_tables(ResultCollection(results)).tables
    assert table.name == "d"
    assert [row.names[1] for row in table.rows] == ["gbdt", "gblinear"]


def test_variants_under_several_boosters_have_a_table_for_each():
    results = [variant(name, booster, i, 1.0) for name in "ab" for booster in ("gbdt", "gblinear") for i in range(3)]
    report = build_tables(ResultCollection(results))
    assert [table.name for table in report.tables] == ["d/gbdt", "d/gblinear"]
    assert [row.names[1] for row in report.tables[0].rows] == ["a", "b"]


def test_the_primary_metric_comes_first_and_columns_can_be_chosen(sample):
    assert [column.name for column in build_tables(sample, times=False).tables[0].columns] == ["rmse", "mae", "r2"]
    chosen = build_tables(sample, metrics=["r2", "nothing", "rmse"], times=False).tables[0]
    assert [column.heading for column in chosen.columns] == ["R² ↑", "RMSE ↓"]
    assert chosen.columns[1].primary


def test_an_unknown_metric_has_no_arrow_and_no_winner():
    results = [variant(name, "gbdt", i, float(name == "b")) for name in "ab" for i in range(4)]
    renamed = [r.model_copy(update={"metrics": {"home made": r.metrics["rmse"]}}) for r in results]
    (table,) = build_tables(ResultCollection(renamed), require_significance=False).tables
    assert table.columns[0].heading == "home made"
    assert table.pairs == ()
    assert not any(row.cells[0].best for row in table.rows)


def test_a_value_that_is_not_finite_is_said_and_never_best():
    results = [variant(name, "gbdt", i, math.nan if name == "a" else 1.0) for name in "ab" for i in range(4)]
    report = build_tables(ResultCollection(results))
    (table,) = report.tables
    assert table.rows[0].cells[0].text == "not finite"
    assert not any(row.cells[0].best for row in table.rows)
    assert '"mean": null' in build_document(ResultCollection(results)).to_json()


def test_failed_cells_are_counted_and_a_library_that_always_failed_is_still_a_row(sample):
    table = build_tables(sample).tables[1]
    assert (table.rows[2].n, table.rows[2].failed) == (3, 2)
    assert "catboost: 2 of 5 cells failed (Timeout: The cell took longer than 60 s)." in table.notes
    only = ResultCollection(sample.results, [sample.errors[0].model_copy(update={"library": "sklearn"})])
    row = build_tables(only).tables[1].rows[-1]
    assert (row.names, row.count) == (("sklearn",), "0 (1 failed)")
    assert {(c.text, c.status, c.shown) for c in row.cells} == {("\u2013", "error", "error")}


def test_a_run_with_nothing_but_errors_still_has_a_table(sample):
    report = build_tables(ResultCollection(errors=sample.errors))
    assert report.tables[0].columns == ()
    assert "2 of 2 cells failed" in report.to_markdown()


def test_no_results_are_said():
    assert build_tables(ResultCollection()).to_markdown() == "No cell finished, so there is no answer.\n"


def test_an_incomplete_run_is_said(sample):
    report = build_tables(ResultCollection(sample.results, metadata=RunMetadata(n_missing=3, n_cells=41)))
    assert "The run is incomplete: 3 of 41 cells have no outcome." in report.notes


def test_part_of_a_run_is_said_to_be_one(sample):
    part = sample.filter(dataset="california")
    left_out = sample.metadata.n_cells - len(part.results) - len(part.errors)
    told = f"{left_out} of the run's {sample.metadata.n_cells} outcomes are left out here."
    assert told in build_tables(part).notes
    assert not [note for note in build_tables(sample).notes if "left out here" in note]


def test_library_defaults_are_labeled(sample):
    results = [r.model_copy(update={"profile": "defaults"}) for r in sample.filter(dataset="california").results]
    report = build_tables(ResultCollection(results))
    assert report.tables[0].title == "california/gbdt (5 splits, library defaults)"
    assert any(note.startswith("Profile 'defaults'") for note in report.notes)


def test_timing_mode_silences_the_warning_about_times(sample):
    timed = [r.model_copy(update={"timing_mode": True}) for r in sample.results]
    assert not any("rough guide" in note for note in build_tables(ResultCollection(timed)).notes)
    assert any("rough guide" in note for note in build_tables(sample).notes)
    assert not any("rough guide" in note for note in build_tables(sample, times=False).notes)


def test_times_are_judged_only_if_all_were_taken_in_timing_mode(sample, timed):
    def judged(results):
        report = build_tables(ResultCollection(results))
        return [c.metric for c in report.tables[0].pairs if c.metric == "train_time_s"], cell(
            report, "california/gbdt", "lightgbm", "train_time_s"
        ).best

    assert judged(timed.results) == (["train_time_s"] * 3, True)
    assert judged(sample.results) == ([], False)
    mixed = [timed.results[0].model_copy(update={"timing_mode": False}), *timed.results[1:]]
    assert judged(mixed) == ([], False)
    loose = build_tables(sample, require_significance=False)
    assert not cell(loose, "california/gbdt", "lightgbm", "train_time_s").best


def test_an_interval_ends_where_the_metric_does():
    results = [variant(name, "gbdt", i, 0.001 * 9**i) for name in "ab" for i in range(3)]
    signed = [r.model_copy(update={"metrics": {"rmse": r.metrics["rmse"], "r2": r.metrics["rmse"]}}) for r in results]
    (table,) = build_tables(ResultCollection(signed)).tables
    rmse, r2 = table.rows[0].cells
    assert (rmse.low, rmse.high) == (0.0, r2.high)
    assert r2.low < 0


def test_an_interval_ends_at_the_upper_end_too():
    results = [variant(name, "gbdt", i, 0.0) for name in "ab" for i in range(3)]
    high = [r.model_copy(update={"metrics": {"accuracy": (0.8, 1.0, 1.0)[r.seed]}}) for r in results]
    (table,) = build_tables(ResultCollection(high)).tables
    assert (table.columns[0].ceiling, table.rows[0].cells[0].high) == (1.0, 1.0)


def test_memory_columns_appear_where_memory_was_measured(sample):
    measured = [
        r.model_copy(update={"peak_memory_mb": 12.5 + r.seed / 1e4, "model_size_mb": 0.5}) for r in sample.results
    ]
    names = [column.name for column in build_tables(ResultCollection(measured)).tables[0].columns]
    assert names[-2:] == ["peak_memory_mb", "model_size_mb"]
    sized = [r.model_copy(update={"model_size_mb": 0.5}) for r in sample.results]
    assert "model_size_mb" not in [c.name for c in build_tables(ResultCollection(sized)).tables[0].columns]


def test_folds_are_part_of_the_sample_size(sample):
    folded = [r.model_copy(update={"fold": fold}) for r in sample.filter(dataset="iris").results for fold in range(2)]
    (table,) = build_tables(ResultCollection(folded)).tables
    assert table.details == ("10 splits: 2 folds x 5",)
    assert table.rows[0].points[:2] == ("seed 42, fold 0", "seed 42, fold 1")


def test_a_metric_that_some_results_lack_shows_its_own_n(sample):
    results = list(sample.filter(dataset="iris").results)
    results[0] = results[0].model_copy(update={"metrics": {"mlogloss": 0.2}})
    (table,) = build_tables(ResultCollection(results)).tables
    assert table.rows[0].cells[1].text.endswith("(n = 4)")
    assert table.rows[0].cells[1].values[0] is None  # so that every other value keeps its own seed
    assert len(table.rows[0].cells[1].values) == len(table.rows[0].points) == 5


def test_a_cell_without_a_usable_number_says_why(sample):
    rows = {r.library: r for r in sample.filter(dataset="california").results}
    results = [
        rows["boosters"],
        rows["xgboost"].model_copy(update={"metrics": {"rmse": math.nan, "mae": 0.3}}),
        rows["lightgbm"].model_copy(update={"train_time_s": None}),
    ]
    report = build_tables(ResultCollection(results))
    statuses = {row.label: [cell.status for cell in row.cells] for row in report.tables[0].rows}
    assert statuses["boosters"] == ["ok"] * 5
    assert statuses["xgboost"] == ["error", "ok", "missing", "ok", "ok"]
    assert statuses["lightgbm"] == ["ok", "ok", "ok", "missing", "ok"]
    assert "| not finite (error) | 0.3000 | missing " in report.to_markdown()


def test_unequal_trees_are_told(sample):
    results = [
        r.model_copy(update={"n_trees_trained": 37 if r.library == "lightgbm" else 100, "n_leaves_total": None})
        for r in sample.filter(dataset="california").results
    ]
    (table,) = build_tables(ResultCollection(results)).tables
    assert (
        "The models differ in size (mean of each library): boosters 100 trees; xgboost 100 trees; lightgbm 37 trees."
        in table.notes
    )


def test_a_flood_of_warnings_is_cut_short_and_counted(sample):
    noisy = [r.model_copy(update={"warnings": (f"odd thing {i}",)}) for i, r in enumerate(sample.results)]
    notes = build_tables(ResultCollection(noisy)).notes
    assert "26 further findings of this kind." in notes


def test_inconclusive_pairs_are_noted_beside_decided_ones_and_else_in_the_answer_alone():
    noise = {
        "a": (0.50, 0.52, 0.51, 0.53, 0.49),
        "b": (0.52, 0.51, 0.52, 0.52, 0.51),
        "c": (0.91, 0.92, 0.9, 0.93, 0.9),
    }
    rows = factories.grid(lambda _, library, index: noise[library][index], libraries=tuple(noise), seeds=5)
    (table,) = build_tables(ResultCollection(rows)).tables
    assert any("inconclusive between a and b. 5 splits could have shown" in note for note in table.notes)
    (table,) = build_tables(ResultCollection([row for row in rows if row.library != "c"])).tables
    assert not any("inconclusive" in note for note in table.notes)
    assert table.answer[0].startswith(
        "Which: cannot say from 5 splits of 20 test rows: a has the best mean RMSE, but b may be up to "
    )


def test_the_interval_of_a_mean_carries_the_correction_for_shared_data(sample):
    corrected = cell(build_tables(sample), "california/gbdt", "boosters", "rmse")
    plain = cell(build_tables(sample, test="paired"), "california/gbdt", "boosters", "rmse")
    widened = (corrected.high - corrected.low) / (plain.high - plain.low)
    assert widened == pytest.approx(math.sqrt((1 / 5 + 200 / 800) / (1 / 5)))


def test_markdown_of_hostile_names_keeps_its_shape(hostile):
    tokens = MarkdownIt("commonmark").enable("table").parse(build_tables(hostile).to_markdown())
    rows = [token for token in tokens if token.type == "tr_open"]
    cells = [token for token in tokens if token.type in ("td_open", "th_open")]
    assert len(rows) == 3
    assert len(cells) == 3 * 5
    html = MarkdownIt("commonmark").enable("table").render(build_tables(hostile).to_markdown())
    assert "<script" not in html


def test_a_terminal_shows_bold_instead_of_asterisks(sample):
    console = Console(file=io.StringIO(), width=160, force_terminal=True, color_system="standard")
    print_document(build_tables(sample).document(), console)
    text = console.file.getvalue()
    assert "**" not in text
    assert "\x1b[1;32m0.09800 ± 0.00092" in text


def test_control_characters_never_reach_the_terminal(hostile, sample):
    assert "\x1b" not in printed(build_tables(hostile))
    error = sample.errors[0].model_copy(update={"error_message": "\x1b[31mred"})
    warned = sample.results[0].model_copy(update={"warnings": ("\x1b[31mred",)})
    shown = printed(build_tables(ResultCollection([warned], [error])))
    assert "\x1b" not in shown
    assert shown.count("\ufffd[31mred") == 3  # in the answer and in two notes


def test_a_collection_renders_itself(sample):
    assert sample.to_markdown() == build_tables(sample).to_markdown()
    assert "**0.4518" in sample.to_markdown(require_significance=False)
    assert "**0." not in sample.to_markdown(highlight_best=False)
    assert sample._repr_html_() == build_tables(sample)._repr_html_()
