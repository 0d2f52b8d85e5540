"""Comparing libraries: benchmarks, suites, the fit workload, results and their tables."""
