"""Writes docs/journey.md: the pages on the way from a question to an approved quote, as a browser shows them.

``make journey``. The way is that of tests/test_journey.py, which holds each page to axe and to its width.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "journey.md"
PICTURES: Final = ROOT / "docs" / "journey"
KEPT: Final = ("desktop-light", "phone-dark")
"""Views whose pictures are kept. The test looks at four."""
TITLES: Final = {
    "1-landing": "The landing page",
    "2-ask": "Ask: an answer beside the question",
    "3-new-plan": "A new plan, filled in with the question",
    "4-plan": "The plan and its candidates",
    "5-quote": "A quote of the best candidate",
    "6-quotes": "All quotes",
    "7-approvals": "What waits for an approver who signs in",
    "8-approval": "The approval",
    "9-link": "The same by a link, without an account",
    "10-report": "The report to print",
    "11-budget": "The budget that the quote takes from",
    "12-fleet": "The fleet",
    "13-node": "A node that is slower than its equals",
    "14-calibration": "What its results changed",
}
HEAD: Final = """# From a question to an approved quote, in pictures

`make journey` writes this page. A browser goes the way of [tests/test_journey.py](../tests/test_journey.py):
an engineer asks, searches a plan, quotes its best candidate and submits it; a lead who signs in and a
controller with a link approve it; the report is printed, and budget and fleet are read. Each page is held to
axe and to its width, at 1,280 and 390 pixels, light and dark. The first answer is the time to the first byte
on loopback, of a service that answers its first request of the kind; that of the plan contains its search.

| page | kB | first answer, ms |
|---|---|---|
"""


def main() -> None:
    """Goes the way, and writes the page and its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        walk = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-q", "tests/test_journey.py"]
        subprocess.run(walk, cwd=ROOT, env={**os.environ, "IRONLAW_JOURNEY": folder}, check=True)
        shutil.rmtree(PICTURES, ignore_errors=True)
        PICTURES.mkdir()
        for name in TITLES:
            for view in KEPT:
                shutil.copy(Path(folder) / f"{name}-{view}.jpg", PICTURES)
        sizes = [line.split(",") for line in (Path(folder) / "sizes.csv").read_text().split()]
    rows = "".join(f"| {TITLES[name]} | {size} | {first} |\n" for name, size, first in sizes)
    pictures = "".join(
        f"\n## {title}\n\n" + "".join(f"![{title}, {view}](journey/{name}-{view}.jpg)\n" for view in KEPT)
        for name, title in TITLES.items()
    )
    PAGE.write_text(HEAD + rows + pictures, encoding="utf-8")


if __name__ == "__main__":
    main()
