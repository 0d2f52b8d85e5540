"""Benchmark results in the table model: rows, verdicts, notes, rankings, and the whole report."""
