"""Reports on a suite, an earlier run or a results file."""
