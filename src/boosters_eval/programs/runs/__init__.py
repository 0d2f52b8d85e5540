"""The runs in a home: what there is, and whether it is what it was."""
