"""The page of a large run: how big it is, how long it takes to draw, how long Chromium takes to open it.

    make bench-page

A record of 100,000 steps and 500 findings, with every list as long as a record may make it. The time is the browser's
own (navigation timing): from the start of the navigation to the end of the load event, when the whole page is built.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.report.page.browser import CHROMIUM, DRIVER, MISSING, browser
from tests.report.page.pages import full_record, huge_record

from stoker.report.page import document

_ROUNDS = 5


def main() -> None:
    """Print a table."""
    records = {"a small run": full_record(), "100,000 steps, 500 findings": huge_record()}
    print(f"{'run':<30}{'file':>10}{'drawing':>12}{'opening, median':>18}{'worst':>10}")
    for name, record in records.items():
        started = time.perf_counter()
        page = document.page(record)
        drawing = time.perf_counter() - started
        opening = opened(page)
        times = f"{statistics.median(opening):>15.0f} ms{max(opening):>7.0f} ms" if opening else MISSING
        print(f"{name:<30}{len(page.encode()) / 1e3:>7.0f} kB{drawing * 1e3:>9.0f} ms{times}")


def opened(page: str) -> list[float]:
    """Milliseconds to open the page, several times."""
    if not (CHROMIUM and DRIVER):
        return []
    with tempfile.TemporaryDirectory() as directory, browser() as chromium:
        path = Path(directory) / "page.html"
        path.write_text(page, encoding="utf-8")
        times = []
        for _ in range(_ROUNDS):
            chromium.open(path)
            chromium.until("document.readyState === 'complete'")
            times.append(float(chromium.script("performance.getEntriesByType('navigation')[0].loadEventEnd")))
        return times


if __name__ == "__main__":
    main()
