"""One module per library's table; mapping.py puts them together."""
