"""The version of this package, for packages that must not import its root, which leads to all of them."""

__version__ = "1.0.0.dev0"
