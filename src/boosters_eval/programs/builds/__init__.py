"""Adds, shows and removes builds of libraries."""
