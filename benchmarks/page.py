"""The page of a large run, and a long series in `stoker ui`: how long Chromium takes to show them.

    make bench-page

A record of 100,000 steps and 500 findings, with every list as long as a record may make it; its time is the browser's
own (navigation timing), from the start of the navigation to the end of the load event, when the whole page is built.
And a run with a series of 100,000 points, from the start of the navigation until the frame with its curve is on the
screen: the server, the store and the drawing are all in it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.doctor.report.page.browser import CHROMIUM, DRIVER, MISSING, browser
from tests.doctor.report.page.pages import full_record, huge_record
from tests.tracking.ui.site import TOKEN, served

from stoker.doctor.report.page import document
from stoker.tracking.store import address
from stoker.tracking.store.tracking import TrackedRun

_ROUNDS = 5
_POINTS = 100_000
_DRAWN = """
const done = arguments[0];
const look = () => document.querySelector("#curves canvas")
  ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))) : requestAnimationFrame(look);
look();
"""


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
    drawn = series_drawn()
    if drawn:
        print(
            f"stoker ui, a series of {_POINTS:,} points, until drawn: {statistics.median(drawn):.0f} ms (median of "
            f"{len(drawn)}), worst {max(drawn):.0f} ms"
        )


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


def series_drawn() -> list[float]:
    """Milliseconds until the curve of a long series is on the screen, several times."""
    if not (CHROMIUM and DRIVER):
        return []
    with tempfile.TemporaryDirectory() as directory:
        store = address.parse(f"sqlite:///{directory}/stoker.db")
        with TrackedRun("long", {}, store=store, kind="track") as run:
            for step in range(_POINTS):
                run.log(step, loss=1 / (step + 1) + 0.01 * (step % 7))
        run.flush()
        with served(store) as site, browser() as chromium:
            chromium.open(f"{site.url}/?token={TOKEN}")
            times = []
            for _ in range(_ROUNDS):
                chromium.driver.get("about:blank")
                chromium.open(f"{site.url}/#/run/{run.id}")
                times.append(float(chromium.driver.execute_async_script(_DRAWN)))
            chromium.driver.get("about:blank")  # lets go of the events
        return times


if __name__ == "__main__":
    main()
