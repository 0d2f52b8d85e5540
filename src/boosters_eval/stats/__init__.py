"""Observations in, verdicts out: pure functions that know neither results nor files.

observations says what is compared, significance compares two sides, tables all sides of a table, ranks libraries over
data sets; sequential decides when there are enough seeds; bootstrap gives the lower bound of the promotion gate.
"""
