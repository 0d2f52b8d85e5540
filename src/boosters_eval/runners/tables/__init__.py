"""One library's table a module; mapping.py puts them together."""
