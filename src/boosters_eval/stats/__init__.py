"""Statistics over finished results: pure functions, no input or output, no other room.

significance compares two libraries, tables all libraries of a config, ranks over data sets; sequential decides
when there are enough seeds; bootstrap gives the lower bound of the promotion gate.
"""
