"""Versions and builds of libraries as competitors: what a user names them by, and where they are installed."""

from __future__ import annotations

from boosters_eval.builds.resolve import competitor_name, install_reference, released_versions, resolve_build

__all__ = ["competitor_name", "install_reference", "released_versions", "resolve_build"]
