"""Reading a document in a test, and what came out of it."""

from __future__ import annotations

from boosters_eval.programs.paper.extract import extract_benchmarks
from boosters_eval.programs.paper.request import ExtractPaperRequest
from boosters_eval.programs.paper.specification import make_row_key


def read_tables(folder, text, name="paper.md", **options):
    path = folder / name
    path.write_text(text)
    return extract_benchmarks(ExtractPaperRequest(document=path, **options)).tables


def list_values(table):
    """Each value under its row, data set and metric, with its unit."""
    return {
        (make_row_key(entry.group, entry.model_name), entry.dataset, name): (
            f"{entry.printed[name]} {entry.metric_units.get(name, '')}".strip()
        )
        for entry in table.entries
        for name in entry.metrics
    }
