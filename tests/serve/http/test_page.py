"""The page where a person tries a model, in a real browser: it asks, says what is wrong, and fits a phone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

import uvicorn

from stoker.serve.http.transport import Protocol
from tests.doctor.report.page.browser import CHROMIUM, DRIVER, MISSING, Browser, browser
from tests.serve.http.asking import application
from tests.support import wait_until

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)


@contextmanager
def served(path: Path, **options: Any) -> Iterator[str]:
    """The bundle on a free port; its address."""
    app, _ = application({"pets": path}, **options)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, http=Protocol, ws="none", lifespan="off", log_level="critical", proxy_headers=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        app.models.close()


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as one:
        yield one


def asked(opened: Browser, name: str, value: str) -> None:
    """Type a value into a field and ask."""
    opened.script(
        "[...document.querySelectorAll('#fields label')].find((one) => one.firstChild.data === arguments[0])"
        ".querySelector('input, textarea').value = arguments[1]",
        name,
        value,
    )
    opened.script("document.querySelector('#answer').replaceChildren()")
    opened.click("#form button")
    opened.until("document.querySelector('#answer').textContent !== ''")


def test_a_row_is_typed_and_answered(pets: tuple[Any, Path], opened: Browser) -> None:
    with served(pets[1]) as url:
        opened.problems()
        opened.open(url + "/")
        opened.until("document.querySelectorAll('#fields label').length === 2")
        asked(opened, "width", "3")
        assert opened.text("#label") in ("cat", "dog", "eel")
        assert opened.script("document.querySelectorAll('.bar').length") == 3
        assert "ms" in opened.text("#time")
        assert "curl http" in opened.text("#curl")
        assert '"width":3' in opened.text("#curl")
        assert opened.problems() == []
        asked(opened, "width", "2.5")
        assert opened.text("#answer") == "'width': expected int32, got 2.5"
        asked(opened, "numbers", "[1, 2")
        assert opened.text("#answer") == "numbers: that is no JSON"
        # The browser's own note of the answer 400.
        assert all("400" in problem for problem in opened.problems())
        opened.driver.get("about:blank")


def test_it_asks_for_the_token_and_fits_a_phone_in_the_dark(pets: tuple[Any, Path], opened: Browser) -> None:
    from selenium.webdriver.support import expected_conditions
    from selenium.webdriver.support.ui import WebDriverWait

    with served(pets[1], token="secret") as url:
        opened.cdp(
            "Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True
        )
        opened.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        opened.driver.get(url + "/")
        question = WebDriverWait(opened.driver, 60).until(expected_conditions.alert_is_present())
        question.send_keys("secret")
        question.accept()
        opened.until("document.querySelectorAll('#fields label').length === 2")
        asked(opened, "width", "3")
        assert opened.script("document.documentElement.scrollWidth") <= 390
        assert opened.script("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 27)"
        assert "Authorization: Bearer $TOKEN" in opened.text("#curl")
        opened.driver.get("about:blank")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a table, with two rows of its file as examples."""
    import keras

    import stoker

    where = tmp_path_factory.mktemp("homes")
    lines = ["day,new,town,size,class"]
    lines += [
        f"2026-01-{1 + n % 28:02},{str(n % 3 == 0).lower()},{('Rome', 'Oslo')[n % 2]},{n}.5,{'ab'[n % 2]}"
        for n in range(60)
    ]
    (where / "t.csv").write_text("\n".join(lines))
    train: Any = stoker.data.csv(where / "t.csv", "class", 20, cache=False)
    inputs = train.features.inputs()
    scores = keras.layers.Dense(2, activation="softmax", name="probabilities")(train.features.encode(inputs))
    examples = [
        {"day": "2026-01-05", "new": True, "town": "Oslo", "size": 4.5},
        {"day": "2026-01-28", "new": False, "town": None, "size": 9.5},
    ]
    stoker.export(keras.Model(inputs, scores), where / "bundle", train, examples=examples)
    return where / "bundle"


def test_a_table_has_lists_checkboxes_dates_and_rows_to_choose(homes: Path, opened: Browser) -> None:
    with served(homes) as url:
        opened.problems()
        opened.open(url + "/")
        opened.until("document.querySelectorAll('#fields label').length === 4")
        values = (
            "[...document.querySelectorAll('#fields label')].map((one) => one.querySelector('input, select'))"
            ".map((one) => [one.type, one.type === 'checkbox' ? one.checked : one.value])"
        )
        wanted = [["date", "2026-01-05"], ["checkbox", True], ["select-one", '"Oslo"'], ["number", "4.5"]]
        assert opened.script(values) == wanted
        opened.click("#form button")
        opened.until("document.querySelector('#answer').textContent !== ''")
        assert opened.text("#label") in ("a", "b")
        shown = opened.script("document.querySelector('#answer pre').textContent")
        assert '"scores"' in shown
        # The model's own name for the same numbers.
        assert "probabilities" not in shown
        assert '"new":true,"town":"Oslo"' in opened.script("document.querySelector('#curl').textContent")
        opened.script("document.querySelector('#example').value = 1")
        opened.script("document.querySelector('#example').onchange()")
        wanted = [["date", "2026-01-28"], ["checkbox", False], ["select-one", ""], ["number", "9.5"]]
        assert opened.script(values) == wanted
        assert '"new":false,"town":null' in opened.script("document.querySelector('#curl').textContent")
        opened.script("document.querySelector('#answer').replaceChildren()")
        opened.click("#form button")
        opened.until("document.querySelector('#label') !== null")
        assert opened.problems() == []
        opened.driver.get("about:blank")
