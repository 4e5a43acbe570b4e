"""MLflow's REST API, as far as runs go: standard library only."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from stoker.errors import UsageError

_API = "/api/2.0/mlflow/"
_TIMEOUT_S = 60
_PAGE = 1000


class Server:
    """An MLflow tracking server by its URL."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, what: str, **query: Any) -> dict[str, Any]:
        """Ask for something."""
        return self._ask(urllib.request.Request(f"{self.url}{_API}{what}?{urllib.parse.urlencode(query)}"))

    def post(self, what: str, **body: Any) -> dict[str, Any]:
        """Send something."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return self._ask(urllib.request.Request(f"{self.url}{_API}{what}", data, headers))

    def _ask(self, request: urllib.request.Request) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")[:300]
            raise UsageError(f"MLflow at {self.url} refuses ({error.code}): {said}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise UsageError(f"no MLflow answers at {self.url} ({reason}): is the server running?") from None

    def experiments(self) -> Iterator[dict[str, Any]]:
        """All experiments that are not deleted."""
        yield from self._pages("experiments/search", "experiments")

    def runs(self, experiment: str) -> Iterator[dict[str, Any]]:
        """The runs of an experiment."""
        yield from self._pages("runs/search", "runs", experiment_ids=[experiment])

    def _pages(self, what: str, name: str, **body: Any) -> Iterator[dict[str, Any]]:
        token: str | None = ""
        while token is not None:
            page = self.post(what, max_results=_PAGE, page_token=token, **body)
            yield from page.get(name, [])
            token = page.get("next_page_token") or None

    def points(self, run: str, name: str) -> Iterator[dict[str, Any]]:
        """Everything a run logged under a name."""
        token: str | None = ""
        while token is not None:
            query = {"run_id": run, "metric_key": name, "max_results": 25000}
            page = self.get("metrics/get-history", **query, **({"page_token": token} if token else {}))
            yield from page.get("metrics", [])
            token = page.get("next_page_token") or None


def as_number(value: Any) -> float:
    """MLflow writes what JSON cannot as a word, and infinities as the largest number there is."""
    number = float(value)
    return math.copysign(math.inf, number) if abs(number) >= 1.7976931348623157e308 else number


def as_json(value: float) -> Any:
    """A number as MLflow's JSON takes it."""
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else value
