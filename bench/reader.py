"""Times the documentation of the API in a browser: `python -m bench.reader [PATH...]`.

For each page: seconds from navigation until its first operation can be clicked, elements of the page, and
bytes that were transferred. The service is started for it, so that the first page finds nothing prepared.
"""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.serving import serving

PAGES = {"/docs": 'a[href^="/docs/operations/"]', "/docs/operations/estimate_utility_bill": "#try button"}
"""Target of the first click on each page."""
ROUNDS = 5
_COUNT = "document.querySelectorAll('*').length"
_BYTES = "performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize || 0), 0)"


def measure(browser: Browser, address: str, target: str) -> tuple[float, int, int]:
    """Opens a page without a cache; seconds, elements and bytes."""
    page = browser.new_context().new_page()
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator(target).first.click(trial=True)
    seconds = time.perf_counter() - began
    page.wait_for_load_state("load")
    measured = seconds, page.evaluate(_COUNT), page.evaluate(_BYTES)
    page.context.close()
    return measured


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder)) as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print("| page | first, s | median, s | elements | transferred, kB |\n| --- | --- | --- | --- | --- |")
        for path in sys.argv[1:] or PAGES:
            rounds = [measure(browser, server.address + path, PAGES.get(path, "a")) for _ in range(ROUNDS)]
            seconds = [each[0] for each in rounds]
            _, elements, transferred = rounds[0]
            median = statistics.median(seconds)
            print(f"| `{path}` | {seconds[0]:.2f} | {median:.2f} | {elements:,} | {transferred / 1000:.0f} |")
        browser.close()


if __name__ == "__main__":
    main()
