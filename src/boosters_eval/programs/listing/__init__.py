"""What there is: data sets, libraries, suites and metrics."""
