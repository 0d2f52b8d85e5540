"""Versions and builds of libraries as competitors: what a user names them by, and where they are installed."""
