"""The version of this package, for rooms that may not look at its front door, which leads to all of them."""

__version__ = "0.1.0"
