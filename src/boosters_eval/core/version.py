"""The version of this package, for rooms that may not look at its front door, which leads to all of them."""

__version__ = "1.0.0.dev0"
