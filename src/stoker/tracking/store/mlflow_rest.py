"""The part of MLflow's REST API that deals with runs, using only the standard library."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator

from stoker.errors import UsageError
from stoker.tracking.store.plain_values import JsonObject

_API = "/api/2.0/mlflow/"
_TIMEOUT_S = 60
_PAGE = 1000
_PAGE_OF_POINTS = 25_000


class MlflowServer:
    """An MLflow tracking server."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, what: str, **query: object) -> JsonObject:
        """Send a GET request."""
        return self._send(urllib.request.Request(f"{self.url}{_API}{what}?{urllib.parse.urlencode(query)}"))

    def post(self, what: str, **body: object) -> JsonObject:
        """Send a POST request."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return self._send(urllib.request.Request(f"{self.url}{_API}{what}", data, headers))

    def _send(self, request: urllib.request.Request) -> JsonObject:
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                found: JsonObject = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")[:300]
            raise UsageError(f"MLflow at {self.url} refused the request ({error.code}): {said}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise UsageError(
                f"MLflow does not answer at {self.url} ({reason}): is the server running?"
            ) from None

    def experiments(self) -> Iterator[JsonObject]:
        """Yield all experiments that are not deleted."""
        yield from _read_pages(
            "experiments", lambda **more: self.post("experiments/search", max_results=_PAGE, **more)
        )

    def runs(self, experiment: str) -> Iterator[JsonObject]:
        """Yield the runs of an experiment."""
        body = {"experiment_ids": [experiment], "max_results": _PAGE}
        yield from _read_pages("runs", lambda **more: self.post("runs/search", **body, **more))

    def points(self, run: str, name: str) -> Iterator[JsonObject]:
        """Yield everything that a run logged under a name."""
        query = {"run_id": run, "metric_key": name, "max_results": _PAGE_OF_POINTS}
        yield from _read_pages("metrics", lambda **more: self.get("metrics/get-history", **query, **more))


def _read_pages(name: str, ask: Callable[..., JsonObject]) -> Iterator[JsonObject]:
    """Yield the items of all pages of an answer."""
    page = ask()
    yield from page.get(name, [])
    while token := page.get("next_page_token"):
        page = ask(page_token=token)
        yield from page.get(name, [])


def parse_number(value: str | float) -> float:
    """Parse a number from MLflow, which writes NaN as a word and an infinity as the largest float."""
    number = float(value)
    return math.copysign(math.inf, number) if abs(number) >= 1.7976931348623157e308 else number


def format_number(value: float) -> float | str:
    """Convert a number to a form that MLflow's JSON takes."""
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else value
