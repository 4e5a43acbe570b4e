"""The page as people see it: in a real browser, at the widths of a phone and a desk, in the dark and in the light."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.doctor.diagnosis.comparison import changes, compare
from stoker.doctor.report import comparison
from stoker.doctor.report.page import document
from stoker.records import Record
from tests.doctor.report.page.browser import CHROMIUM, DRIVER, MISSING, Browser, browser
from tests.doctor.report.page.pages import HOSTILE, first_record, full_record, hostile_record, huge_record
from tests.samples import sample_simulated_record

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)

PHONE, DESK = 390, 1200


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("pages")
    before, after = [sample_simulated_record()], [full_record(id="20261116-000000-aaaa")]
    made = {
        "full": document.page(full_record()),
        "hostile": document.page(hostile_record()),
        "old": document.page(Record.from_json(first_record())),
        "huge": document.page(huge_record()),
        "compare": comparison.page(before, after, compare(before, after), changes(before, after)),
        "hostile-compare": comparison.page(
            before,
            [hostile_record()],
            compare(before, [hostile_record()]),
            changes(before, [hostile_record()]),
        ),
    }
    for name, text in made.items():
        (directory / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: directory / f"{name}.html" for name in made}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def page(chromium: Browser) -> Iterator[Browser]:
    """The browser; whatever a test does, nothing may go wrong on the console and nothing be asked of the network."""
    chromium.problems()
    chromium.requests()
    yield chromium
    assert chromium.problems() == []
    assert [url for url in chromium.requests() if not url.startswith(("file://", "data:"))] == []


@pytest.mark.parametrize("name", ["full", "old", "huge", "compare", "hostile", "hostile-compare"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_page_fits_its_width(page: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    page.open(pages[name], width)
    assert page.script("document.documentElement.scrollWidth") <= width
    assert page.script("document.querySelectorAll('main section').length") > 2
    assert page.script("document.querySelector('h1').textContent.length") > 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_system_chooses_the_colours_and_the_button_the_others(
    page: Browser, pages: dict[str, Path], scheme: str
) -> None:
    page.open(pages["full"], scheme=scheme)
    other = {"light": "dark", "dark": "light"}[scheme]
    assert page.script("document.documentElement.dataset.theme") == scheme
    before = page.script("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.script("document.documentElement.dataset.theme") == other
    assert page.script("getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(page: Browser, pages: dict[str, Path], scheme: str) -> None:
    page.open(pages["full"], scheme=scheme)
    ratios = page.script(
        """return (() => {
        const value = (name) => colour(name).match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16) / 255);
        const light = (rgb) => rgb.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const ratio = (a, b) => {
            const [high, low] = [light(value(a)), light(value(b))].sort((x, y) => y - x);
            return (high + 0.05) / (low + 0.05);
        };
        const names = ["ink", "quiet", "accent", "warm", "t-comment", "t-string", "t-word", "t-number", "t-call"];
        const all = Object.fromEntries(names.map((name) => [name, ratio(name, "sunken")]));
        return {...all, page: ratio("quiet", "page"), link: ratio("accent", "page")};
        })()"""
    )
    # What the accessibility guidelines ask of text.
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


def test_the_timeline_zooms_and_tells_what_is_under_the_pointer(
    page: Browser, pages: dict[str, Path]
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    page.open(pages["full"])
    over = page.driver.find_element(By.CSS_SELECTOR, ".timeline .u-over")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", over)
    top = -over.size["height"] // 3
    ActionChains(page.driver).move_to_element_with_offset(over, 0, top).perform()
    told = page.text("#timeline .readout")
    assert told.startswith("host · ")
    whole = picture(page)
    page.click("button[title='Zoom in']")
    nearer = picture(page)
    assert nearer != whole
    page.click("button[title='Later']")
    assert picture(page) != nearer
    page.click("button[title='Whole window']")
    assert picture(page) == whole
    ActionChains(page.driver).move_to_element_with_offset(over, -80, top).click_and_hold().move_by_offset(
        120, 0
    ).release().perform()
    assert picture(page) != whole
    page.click("button[title='Window at 7.0 s']")
    assert page.script("document.querySelector('.tabs [aria-pressed=true]').textContent") == "7.0 s"


def picture(page: Browser) -> str:
    """What the timeline's canvas shows, once it is drawn."""
    page.settle()
    return str(page.script("document.querySelector('.timeline canvas').toDataURL()"))


def test_findings_open_to_source_price_and_remedy(page: Browser, pages: dict[str, Path]) -> None:
    page.open(pages["full"])
    assert page.script("document.querySelector('#finding-1').open")
    body = page.text("#finding-1")
    for part in (
        "3.1x",
        "sync-in-loop STK101",
        "Read every N steps.",
        'print(f"loss {loss.numpy():.3f}")',
        "5.00 s",
    ):
        assert part in body
    assert page.script("document.querySelectorAll('#finding-1 .hot').length") >= 1
    page.click("#finding-1 .example summary")
    assert page.script("document.querySelectorAll('#finding-1 .added').length") >= 1
    assert page.script("document.querySelector('#finding-3')") is None
    page.click(".rest > summary")
    page.until("document.querySelector('#finding-3') !== null")
    page.click("#finding-3 > summary")
    page.until("document.querySelector('#finding-3').textContent.includes('numpy-feed-in-loop')")


def test_charts_are_drawn(page: Browser, pages: dict[str, Path]) -> None:
    page.open(pages["full"])
    page.until("""[...document.querySelectorAll('canvas')].map((canvas) => {
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        return pixels.filter((_, i) => i % 4 === 3).some((alpha) => alpha > 0);
    }).join() === 'true,true,true,true'""")


def test_an_owner_of_memory_opens_to_its_line(page: Browser, pages: dict[str, Path]) -> None:
    page.open(pages["full"])
    page.click(".flame .owner:nth-child(2)")
    page.until("document.querySelector('.owner-shown .card') !== null")
    page.click(".flame .owner")
    page.until("document.querySelector('.owner-shown').textContent.includes('5.0 GiB of activations')")
    shown = page.text(".owner-shown")
    assert "train.py:48 in build · model/conv_stack" in shown
    # The source that the record kept, with the line marked.
    assert page.text(".owner-shown .hit .number") == "48"
    widths = "return [...document.querySelectorAll('.flame .role')].map((role) => role.clientWidth)"
    first, second, *_ = page.script(widths)
    assert first > 3 * second
    # Roles and their owners fill the same width.
    rest = "r.querySelector('.owners').scrollWidth - r.clientWidth"
    fills = f"return [...document.querySelectorAll('.flame .role')].map((r) => {rest})"
    assert all(abs(over) <= 2 for over in page.script(fills))


def test_hostile_text_is_shown_and_not_run(page: Browser, pages: dict[str, Path]) -> None:
    for name in ("hostile", "hostile-compare"):
        page.open(pages[name])
        page.script("return document.querySelectorAll('details').forEach((node) => { node.open = true; })")
        page.settle()
        assert page.script("typeof window.hacked") == "undefined"
        assert page.script("document.querySelectorAll('img, svg, iframe, object, embed, form').length") == 0
        assert page.script(
            "[...document.querySelectorAll('a')].every((a) => a.getAttribute('href')[0] === '#')"
        )
        assert HOSTILE[0] in page.text("body main")


def test_the_policy_stops_what_would_be_slipped_in(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["full"])
    chromium.problems()
    chromium.script(
        """return (() => {
        const script = document.createElement('script');
        script.textContent = 'window.hacked = 1';
        document.body.append(script);
        fetch('http://127.0.0.1:9/').catch(() => {});
        })()"""
    )
    assert chromium.script("typeof window.hacked") == "undefined"
    said = " ".join(chromium.problems())
    assert "script-src" in said
    assert "default-src" in said
    chromium.requests()


def test_a_record_of_the_first_stoker_has_its_finding(page: Browser, pages: dict[str, Path]) -> None:
    page.open(pages["old"])
    assert "print(loss.numpy())" in page.text("#finding-1")
    assert page.script("document.querySelector('#timeline')") is None


def test_five_hundred_findings_are_there_when_asked_for(page: Browser, pages: dict[str, Path]) -> None:
    page.open(pages["huge"])
    page.click(".rest > summary")
    page.until("document.querySelectorAll('.finding').length === 500")


def test_it_prints_light_and_unfolded(page: Browser, pages: dict[str, Path]) -> None:
    page.open(pages["full"], scheme="dark")
    made = page.cdp("Page.printToPDF", printBackground=True)
    assert len(made["data"]) > 20_000
    assert page.script("document.documentElement.dataset.theme") == "dark"
    assert page.script("document.querySelector('#finding-2').open")


def test_a_comparison_says_its_verdict(page: Browser, pages: dict[str, Path]) -> None:
    page.open(pages["compare"], PHONE, scheme="dark")
    assert page.text("h1").startswith("Undecided: B looks ")
    assert page.script("document.querySelectorAll('.sides .stack').length") == 2
