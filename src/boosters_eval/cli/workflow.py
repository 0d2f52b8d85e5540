"""What a job of GitHub Actions is told besides the output."""

import os
from pathlib import Path

from boosters_eval.cli.output import note


def in_workflow() -> bool:
    """Whether this program runs in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def summarise(text: str) -> None:
    """Append to the job summary; if that fails, it is only noted."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            note(f"Note: the job summary {path} cannot be written: {error.strerror}.")
