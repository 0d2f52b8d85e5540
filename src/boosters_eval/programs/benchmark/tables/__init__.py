"""Benchmark results in the table model: rows, verdicts, notes, rankings, and the whole report."""

from __future__ import annotations

from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import BenchmarkDocument, build_document
from boosters_eval.programs.benchmark.tables.generate import (
    check_request,
    check_test,
    generate_report,
    render_files,
    report_schema,
)

__all__ = [
    "BenchmarkDocument",
    "build_document",
    "build_tables",
    "check_request",
    "check_test",
    "generate_report",
    "render_files",
    "report_schema",
]
