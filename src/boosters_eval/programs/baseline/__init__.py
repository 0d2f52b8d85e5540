"""Baselines: what was good once, recorded in a file, and whether it still is."""
