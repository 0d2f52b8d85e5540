"""Observations in, verdicts out: pure functions that know neither results nor files.

`observations` defines what is compared, `significance` compares two sides, `tables` compares all sides of a table, and
`ranks` ranks libraries over data sets. `agreement` holds rankings and rows of
numbers against each other. `sequential` decides when there are enough seeds, and `bootstrap` computes the
lower bound for the promotion gate.
"""
