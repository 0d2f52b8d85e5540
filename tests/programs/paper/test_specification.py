"""The file `benchmarks.yaml`: what is read, and how a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.paper.specification import LibraryRun, PaperSpecification, read_specification

SAMPLE = Path(__file__).with_name("titans.yaml")


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = SAMPLE.read_text()
    assert text.count(old) >= 1
    path = tmp_path / "benchmarks.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as error:
        read_specification(path)
    return str(error.value).removeprefix(str(path))


def test_the_sample_of_the_specification_document_loads_unchanged() -> None:
    spec = read_specification(SAMPLE)
    table = spec.tables[0]
    assert (spec.paper, spec.arxiv_id, spec.schema_version) == ("TITANS", "2501.00663", 1)
    assert table.results[0].values["perplexity"].value == 18.2
    assert table.results[0].stds["perplexity"].value == 0.1
    assert table.tolerance == {"perplexity": 0.5, "perplexity_relative": 0.02}
    assert spec.reproduction_targets.secondary[0].table == "Table 2"


def test_a_specification_survives_a_round_trip_through_json() -> None:
    spec = read_specification(SAMPLE)
    assert PaperSpecification.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("tables:", "tabels:", ", line 4: There is no key 'tabels'. Did you mean 'tables'?"),
        ("primary_metric", "primary_metrc", ", line 9: There is no key 'primary_metrc'. Did you mean"),
        (
            'rows: ["TITANS-MAC"]',
            'rows: ["TITANS-MAK"]',
            ", line 59, key 'reproduction_targets.primary.rows': 'Table 1' has no row 'TITANS-MAK'. Did you mean",
        ),
        (
            '["WikiText-103"]',
            '["WikiText"]',
            ", line 60, key 'reproduction_targets.primary.datasets': 'Table 1' has no data set 'WikiText'.",
        ),
        (
            '- table: "Table 1"',
            '- table: "Tabel 1"',
            ", line 58, key 'reproduction_targets.primary.table': A target names the table 'Tabel 1'",
        ),
        (
            "perplexity: 18.2",
            "perplexity:",
            ", line 34, key 'metrics.perplexity': A metric must have a number as its value. Got None instead.",
        ),
        ("perplexity: 18.2", "perplexity: good", "A metric must have a number as its value. Got 'good' instead."),
        ("          perplexity: 18.2\n", "", "The metric 'perplexity' has a deviation but no value."),
        (
            'primary_metric: "perplexity"',
            'primary_metric: "perplexty"',
            ", line 9, key 'tables.primary_metric': 'Table 1' has no metric 'perplexty'.",
        ),
        (
            "        conditions:\n          context_length: 8192\n          batch_size",
            "        units: {perplexty: bits}\n        conditions:\n          batch_size",
            "The result has no metric 'perplexty'. Did you mean 'perplexity'?",
        ),
        ("perplexity_std: 0.1", "perplexity_std: -0.1", "'perplexity_std' must not be negative. Got -0.1 instead."),
        ("perplexity: 0.5 ", "perplexty: 0.5 ", "'Table 1' has no metric 'perplexty'. Did you mean 'perplexity'?"),
        ('model: "Transformer++"', 'model: "Transformer"', "'Table 1' has no row 'Transformer'. Did you mean"),
        ('arxiv_id: "2501.00663"', "arxiv_id: !!python/name:os.system", ", line 2: The tag"),
        (
            'arxiv_id: "2501.00663"',
            "schema_version: 2",
            ", line 2, key 'schema_version': This is a specification of format 2, which",
        ),
        ('arxiv_id: "2501.00663"', 'paper: "again"', ", line 2: The key 'paper' is there twice."),
    ],
)
def test_a_mistake_is_one_sentence_with_the_line_and_the_nearest_name(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert sentence in refusal(changed(tmp_path, old, new))


def test_the_binding_is_told_by_its_key(tmp_path: Path) -> None:
    run = "run: {library: xgboost, native: {max_depth: 6}, early_stopping: {rounds: 50}}"
    spec = read_specification(changed(tmp_path, 'config: "configs/titans_mac.yaml"', run))
    bound = spec.tables[0].models[0].run
    assert isinstance(bound, LibraryRun)
    assert (bound.library, bound.native["max_depth"]) == ("xgboost", 6)
    assert (
        "must have one of the keys library, evaluator, model, estimator, callable, command. Did you mean 'library'?"
        in refusal(changed(tmp_path, 'config: "configs/titans_mac.yaml"', "run: {libary: xgboost}"))
    )


def test_aliases_that_explode_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines))
    assert "The file has more than 32 MB of text" in refusal(path)


@pytest.mark.parametrize(
    ("written", "decimals"), [("0.870", 3), ("18.2", 1), ("125", 0), ('"0.870"', 3), ('"15,234"', 0), ("1.2e3", -2)]
)
def test_the_printed_precision_is_kept(tmp_path: Path, written: str, decimals: int) -> None:
    spec = read_specification(changed(tmp_path, "perplexity: 18.2", f"perplexity: {written}"))
    assert spec.tables[0].results[0].values["perplexity"].decimals == decimals
