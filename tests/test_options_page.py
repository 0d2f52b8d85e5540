"""The page of all options is made from the requests, and so is up to date."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "make_options.py"


def test_the_page_of_options_is_what_the_requests_declare():
    made = runpy.run_path(str(SCRIPT))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](), "run scripts/make_options.py"
