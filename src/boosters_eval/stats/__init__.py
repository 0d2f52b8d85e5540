"""Observations in, verdicts out: pure functions that know neither results nor files.

`observations` defines what is compared, `inference` holds the tests, `significance` compares two sides, `rows` does so
by the rows that were tested, `slices` finds the rows on which one side loses, and `tables` compares all sides of a
table. `ranks` ranks libraries over data sets and says how far rankings agree. `calibration` compares what was predicted
with what was found. `sequential` decides when there are enough seeds, also in a search for a change. `changepoints`
finds steps in a history, and `bootstrap` computes the lower bound for the promotion gate.
"""
