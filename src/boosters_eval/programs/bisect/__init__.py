"""The version in which a number changed."""
