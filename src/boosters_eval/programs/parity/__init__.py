"""Parity of a method across bindings and references: whether they agree, and how long each takes."""
