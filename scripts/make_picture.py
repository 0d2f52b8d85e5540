"""Make docs/images/report.png: the top of the page that the README's command writes, in headless Chromium."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
SIZE = {"width": 1280, "height": 715}


def read_command() -> list[str]:
    """The command above the picture, so that both say the same."""
    before, _, _ = (ROOT / "README.md").read_text().partition("docs/images/report.png")
    line = next(line for line in reversed(before.splitlines()) if line.startswith("    boosters-eval "))
    return line.split()


def draw(page: Path) -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_context(offline=True, viewport=SIZE, color_scheme="light").new_page()
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=PICTURE)
        browser.close()


def main(pages: list[str]) -> None:
    """Draw a page that is there already, or run the command first."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(pages[0] if pages else f"{folder}/report.html")
        if not pages:
            command = [word if word != "report.html" else str(page) for word in read_command()]
            subprocess.run([sys.executable, "-m", "boosters_eval", *command[1:]], check=True)
        draw(page)


if __name__ == "__main__":
    main(sys.argv[1:])
