"""The program that compares libraries: benchmarks, suites, the fit workload, results and their tables."""
