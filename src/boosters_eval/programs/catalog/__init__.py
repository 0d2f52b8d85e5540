"""What there is: libraries and how their parameters are mapped, builds, data sets, suites and metrics."""
