"""The page in a real browser: it draws, lives, fits a phone, asks nobody else, and runs nothing of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stoker.files import JOBS
from stoker.tracking.store import address, opening, writer
from stoker.tracking.store.tracking import TrackedRun
from tests.doctor.report.page.browser import CHROMIUM, DRIVER, MISSING, Browser, browser
from tests.goodput.samples import KILLED, write_job
from tests.tracking.ui.site import HOSTILE, TOKEN, Site, fill, served

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)


@dataclass
class Opened:
    """A browser on a site."""

    browser: Browser
    site: Site
    ids: dict[str, str]
    writers: dict[address.Address, writer.StoreWriter]

    def flush(self) -> None:
        """Wait until what runs have logged is in the store."""
        for one in self.writers.values():
            one.flush()

    def go(self, view: str = "", width: int = 1100, scheme: str = "light") -> Browser:
        """Open a view by its link, as if it were pasted, and wait until it is drawn."""
        self.browser.driver.get("about:blank")
        self.browser.open(f"{self.site.url}/#/{view}", width=width, scheme=scheme)
        self.browser.until("document.querySelector('.view') && !document.querySelector('.loading')")
        return self.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    directory = tmp_path_factory.mktemp("site")
    store = address.parse(f"sqlite:///{directory / 'stoker.db'}")
    with pytest.MonkeyPatch.context() as patch, browser() as opened:
        made: dict[address.Address, writer.StoreWriter] = {}
        patch.setattr(writer, "_writers", made)
        patch.chdir(directory)
        write_job(Path(JOBS), line=f"{HOSTILE}.py:3")
        ids = fill(store, directory, made)
        with served(store) as site:
            opened.open(f"{site.url}/?token={TOKEN}")
            yield Opened(opened, site, ids, made)
            opened.driver.get("about:blank")
        for one in made.values():
            one.close()


@pytest.fixture(autouse=True)
def _nothing_is_wrong(page: Opened) -> Iterator[None]:
    """No error in the console, no request to elsewhere, nothing of the user's was run."""
    page.browser.problems()
    page.browser.requests()
    yield
    page.browser.until("document.title === 'Stoker'")
    assert page.browser.problems() == []
    assert {url.split("/")[2] for url in page.browser.requests() if "://" in url} <= {
        f"127.0.0.1:{page.site.port}"
    }


def test_the_list_is_drawn_filtered_and_sorted(page: Opened) -> None:
    opened = page.go()
    assert opened.script("document.querySelectorAll('tbody tr').length") == 7
    opened.until("document.querySelectorAll('.spark polyline').length >= 3")
    opened.script(
        "return (() => { const box = document.querySelector('.filter'); box.value = 'kind = train';"
        " box.dispatchEvent(new Event('change')); })()"
    )
    opened.until("document.querySelectorAll('tbody tr').length === 3")
    opened.script("[...document.querySelectorAll('.head')].find((one) => one.textContent === 'loss').click()")
    opened.until("document.querySelector('tbody a.name').textContent === 'rate 0.01'")
    assert "where=kind" in opened.driver.current_url


def test_runs_are_chosen_and_compared(page: Opened) -> None:
    opened = page.go("?where=kind+%3D+train")
    opened.script("document.querySelectorAll('.choose').forEach((one) => one.click())")
    opened.click("#compare")
    opened.until("document.querySelectorAll('.parallel .run').length === 3")
    opened.until("document.querySelector('#curves canvas') !== null")
    text = opened.text("#what-changed")
    assert "rate 0.001" in text
    assert "loss" in text


def test_what_a_run_lacks_is_never_null_in_a_comparison(page: Opened) -> None:
    more = {"optimizer": "Adam", "mode": "fast", "only": "here", "rate": 0.1}
    given = (more, {"optimizer": "SGD", "mode": None, "rate": None})
    ids: list[str] = []
    for params in given:
        with TrackedRun("compared", params, store=page.site.store, kind="track") as run:
            run.log(1, {f"loss {len(ids)}": 304_400.25})
        ids.append(run.id)
    page.flush()
    opened = page.go(f"compare/{','.join(ids)}")
    opened.until("document.querySelectorAll('.parallel .run').length === 2")
    shown = opened.text("main")
    assert "Adam" in opened.text(".parallel")
    for odd in ("null", "undefined", "NaN", '"', "e+5"):
        assert odd not in shown, odd
    assert "304,400" in shown


def test_runs_inside_others_are_indented_behind_them(page: Opened) -> None:
    with TrackedRun("outer", {}, store=page.site.store, kind="table recipe") as outer:
        with TrackedRun("inner", {}, store=page.site.store, kind="train"):
            pass
        outer.log(0, {"test RMSE": 7.25})
    page.flush()
    opened = page.go()
    rows = opened.script("[...document.querySelectorAll('tbody a.name')].map((one) => one.textContent)")
    assert rows[:2] == ["outer", "inner"]
    assert opened.text("tbody .inside a.name") == "inner"
    assert "test RMSE" in opened.text("thead")
    assert "7.25" in opened.text("tbody tr")


def test_a_run_is_drawn_and_lives(page: Opened) -> None:
    with TrackedRun("growing", {}, store=page.site.store, kind="train") as run:
        run.log(0, loss=1.0)
        run.flush()
        opened = page.go(f"run/{run.id}")
        opened.until("document.querySelectorAll('#curves canvas').length === 1")
        assert opened.text(".state") == "running"
        opened.until("document.querySelector('.light').className === 'light on'")
        # The first event has to be heard before what follows counts as new.
        opened.until(
            "performance.getEntriesByType('resource').some((one) => one.name.includes('/api/series'))"
        )
        for step in range(1, 50):
            run.log(step, loss=1 / step, accuracy=step / 50)
        run.flush()
        opened.until("document.querySelectorAll('#curves canvas').length === 2")
    run.flush()
    opened.until("document.querySelector('.state').textContent === 'finished'")


def test_the_ledger_is_on_the_time_axis_of_the_loss(page: Opened) -> None:
    opened = page.go(f"run/{page.ids['measured']}")
    opened.until("document.querySelectorAll('#curves canvas').length === 2")
    assert "Where the time went" in opened.text("#curves")
    assert "sync-in-loop" in opened.text("#findings")
    opened.click("#axis")
    opened.until("document.querySelectorAll('#curves canvas').length === 1")


def test_lineage_leads_from_data_to_deployment(page: Opened) -> None:
    opened = page.go(f"run/{page.ids['rate 0.1']}")
    opened.until("document.querySelectorAll('.edges path').length === 3")
    columns = opened.script(
        "[...document.querySelectorAll('.lineage .column')].map((one) => one.textContent)"
    )
    assert len(columns) == 4
    for text, name in zip(columns, ("data.csv", "rate 0.1", "model-2", "serving"), strict=True):
        assert name in text


def test_the_conclusion_about_a_candidate_is_shown(page: Opened) -> None:
    opened = page.go(f"run/{page.ids['serving']}")
    opened.until("document.querySelector('#rollouts')")
    shown = opened.text("#rollouts")
    for word in ("pets", "new/", "same", "597", "0.0 %"):
        assert word in shown


@pytest.mark.parametrize("view", ["", "run/", "compare/", "lines"])
def test_it_fits_a_phone_in_the_dark(page: Opened, view: str) -> None:
    names = {"run/": page.ids["hostile"], "compare/": f"{page.ids['rate 0.1']},{page.ids['hostile']}"}
    opened = page.go(view + names.get(view, ""), width=390, scheme="dark")
    opened.settle()
    assert opened.script("document.documentElement.scrollWidth") <= 390
    assert opened.script("document.documentElement.dataset.theme") == "dark"


def test_hostile_names_are_text(page: Opened) -> None:
    opened = page.go(f"run/{page.ids['hostile']}")
    assert opened.text("h1") == HOSTILE
    assert opened.script("document.querySelectorAll('main img, main script').length") == 0


def test_what_cannot_be_shown_says_why(page: Opened) -> None:
    opened = page.go("run/nothere")
    assert "no run with id 'nothere'" in opened.text(".empty")
    # The browser's own note of the answer 404.
    assert all("404" in problem for problem in opened.problems())


def test_an_empty_store_says_what_to_do(page: Opened, tmp_path: Path) -> None:
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    opening.connect(store).close()
    with served(store) as site:
        page.browser.open(f"{site.url}/?token={TOKEN}")
        page.browser.until("document.querySelector('.empty') !== null")
        assert "stoker run train.py" in page.browser.text(".empty")
        page.browser.driver.get("about:blank")
        page.browser.requests()
    page.go()


def test_where_the_time_of_a_job_went(page: Opened) -> None:
    opened = page.go("jobs")
    assert opened.text("tbody tr").startswith("20261118-195126-c7139d49done60.0 %")
    opened.click("tbody a.name")
    opened.until("document.querySelector('#causes') && document.querySelector('#goodput canvas')")
    chips = opened.text(".chips")
    assert "goodput60.0 %" in chips
    assert "steps lost19" in chips
    assert opened.text("#causes tbody tr").startswith(f"{KILLED}30.0 s30.0 %".replace("30.0 s", "30.00 s"))
    assert HOSTILE in opened.text("#lines")
    assert opened.script("document.querySelectorAll('#workers tbody tr').length") == 2
    opened.script(
        "return (() => { const box = document.querySelector('#price'); box.value = '$3.60/h';"
        " box.dispatchEvent(new Event('change')); })()"
    )
    # Two workers for 100 seconds.
    opened.until("(document.querySelector('.chips') || {textContent: ''}).textContent.includes('cost$0.20')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_job_fits_a_phone(page: Opened, scheme: str) -> None:
    opened = page.go("job/20261118-195126-c7139d49", width=390, scheme=scheme)
    opened.until("document.querySelector('#goodput canvas')")
    assert opened.script("document.documentElement.scrollWidth") <= 390
