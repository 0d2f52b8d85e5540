"""The HTML renderings: a fragment for notebooks, and a page of one file that needs no network."""
