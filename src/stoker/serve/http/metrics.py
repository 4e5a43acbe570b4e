"""Counts for Prometheus, in a file that all workers map: whichever of them is asked tells the sum.

The names are known when the server starts, so every count has its place; each worker adds in a row of its own.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from stoker.serve.http.ledger import ACCOUNTS, Facts, Spent
from stoker.serve.http.settings import Settings

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 421, 429, 499, 500, 503, 504)
_HELP = {
    "stoker_requests_total": ("counter", "Requests answered, by status."),
    "stoker_request_seconds": ("histogram", "From the last byte of a request to its answer."),
    "stoker_rows_total": ("counter", "Rows asked for."),
    "stoker_batch_rows": ("histogram", "Rows in one call of the model."),
    "stoker_engine_seconds_total": ("counter", "Time the model ran."),
    "stoker_queue_rows": ("gauge", "Rows that wait."),
    "stoker_account_seconds_total": ("counter", "Time of requests by account, with --ledger."),
    "stoker_accounted_requests_total": ("counter", "Requests whose time is on an account, with --ledger."),
    "stoker_request_bytes_total": ("counter", "Bytes of requests' bodies, with --ledger."),
}


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the counts are that every request adds to."""

    statuses: dict[int, int]
    rows: int
    seconds: int


class Metrics:
    """The counts of one worker, and the sums of all."""

    def __init__(
        self, models: list[str], file: Path | None = None, worker: int = 0, workers: int = 1
    ) -> None:
        self._places: dict[tuple[str, str, str], int] = {}
        for model in models:
            self._place("stoker_requests_total", model, *(f'status="{one}"' for one in STATUSES))
            self._histogram("stoker_request_seconds", model, SECONDS)
            self._place("stoker_rows_total", model, "")
            self._histogram("stoker_batch_rows", model, ROWS)
            self._place("stoker_engine_seconds_total", model, "")
            self._place("stoker_queue_rows", model, "")
            self._place("stoker_account_seconds_total", model, *(f'account="{one}"' for one in ACCOUNTS))
            self._place("stoker_accounted_requests_total", model, "")
            self._place("stoker_request_bytes_total", model, "")
        self._answers = {model: self._answer_places(model) for model in models}
        self._width, self._rows = len(self._places), workers
        size = 8 * self._width * workers
        if file is None:
            memory = mmap.mmap(-1, max(size, 8))
        else:
            with open(file, "r+b") as stream:
                _allocate(stream.fileno(), max(size, 8))
                memory = mmap.mmap(stream.fileno(), max(size, 8))
        self._all = memoryview(memory).cast("d")
        self._own = self._all[worker * self._width : (worker + 1) * self._width]
        for model in models:
            self.waits(model, 0)  # counts go on where a worker that died had left them

    def _place(self, name: str, model: str, *labels: str) -> None:
        for label in labels:
            self._places[name, model, label] = len(self._places)

    def _histogram(self, name: str, model: str, bounds: tuple[float, ...]) -> None:
        self._place(name, model, *(f'le="{one:g}"' for one in bounds), 'le="+Inf"', "sum")

    def _answer_places(self, model: str) -> _Places:
        statuses = {one: self._places["stoker_requests_total", model, f'status="{one}"'] for one in STATUSES}
        first = self._places["stoker_request_seconds", model, f'le="{SECONDS[0]:g}"']
        return _Places(statuses, self._places["stoker_rows_total", model, ""], first)

    def answered(self, model: str, status: int, seconds: float, rows: int) -> None:
        """A request is done."""
        own, places = self._own, self._answers[model]
        own[places.statuses.get(status, places.statuses[500])] += 1
        own[places.rows] += rows
        own[places.seconds + bisect_left(SECONDS, seconds)] += 1
        own[places.seconds + len(SECONDS) + 1] += seconds

    def ran(self, model: str, rows: int, seconds: float) -> None:
        """The model was called."""
        self._own[self._places["stoker_engine_seconds_total", model, ""]] += seconds
        self._observe("stoker_batch_rows", model, ROWS, rows)

    def accounted(self, model: str, spent: Spent, total: float, size: int) -> None:
        """Where the time of a request went."""
        first = self._places["stoker_account_seconds_total", model, f'account="{ACCOUNTS[0]}"']
        for place, seconds in enumerate(
            (spent.parse, spent.queue, spent.batch, spent.engine, spent.encode, spent.loop(total)), first
        ):
            self._own[place] += seconds
        self._own[self._places["stoker_accounted_requests_total", model, ""]] += 1
        self._own[self._places["stoker_request_bytes_total", model, ""]] += size

    def total(self, name: str, model: str, label: str = "") -> float:
        """A count, of all workers."""
        place = self._places[name, model, label]
        return float(sum(self._all[row * self._width + place] for row in range(self._rows)))

    def calls(self, model: str) -> tuple[float, float]:
        """How often the model was called, with how many rows in all."""
        labels = [*(f'le="{one:g}"' for one in ROWS), 'le="+Inf"']
        count = sum(self.total("stoker_batch_rows", model, label) for label in labels)
        return count, self.total("stoker_batch_rows", model, "sum")

    def books(
        self, model: str, settings: Settings, workers: int, engine: str, settled: bool
    ) -> tuple[dict[str, float], Facts]:
        """The ledger's accounts of a model, of all workers, and what advice depends on."""
        accounts = {
            one: self.total("stoker_account_seconds_total", model, f'account="{one}"') for one in ACCOUNTS
        }
        requests = int(self.total("stoker_accounted_requests_total", model))
        size = self.total("stoker_request_bytes_total", model) / max(1, requests)
        calls, rows = self.calls(model)
        cores = os.cpu_count() or 1
        facts = Facts(requests, size, rows / max(1.0, calls), settings.batch, workers, cores, engine, settled)
        return accounts, facts

    def waits(self, model: str, rows: int) -> None:
        """So many rows wait now."""
        self._own[self._places["stoker_queue_rows", model, ""]] = rows

    def _observe(self, name: str, model: str, bounds: tuple[float, ...], value: float) -> None:
        # The buckets of a kind follow one another.
        first = self._places[name, model, f'le="{bounds[0]:g}"']
        self._own[first + bisect_left(bounds, value)] += 1
        self._own[first + len(bounds) + 1] += value

    def text(self) -> str:
        """All of it, in Prometheus' format."""
        lines: list[str] = []
        cumulative = 0.0
        for name, (kind, text) in _HELP.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            for key, model, label in self._places:
                if key != name:
                    continue
                value = self.total(key, model, label)
                labels = f'model="{model}"' + (f",{label}" if label and label != "sum" else "")
                if kind != "histogram":
                    lines.append(f"{name}{{{labels}}} {_exact(value)}")
                elif label == "sum":
                    lines.append(f"{name}_sum{{{labels}}} {_exact(value)}")
                    lines.append(f"{name}_count{{{labels}}} {_exact(cumulative)}")
                    cumulative = 0.0
                else:
                    cumulative += value
                    lines.append(f"{name}_bucket{{{labels}}} {_exact(cumulative)}")
        return "\n".join(lines) + "\n"


def _exact(value: float) -> str:
    """With every digit: a counter that is rounded stands still."""
    return str(int(value)) if value.is_integer() else repr(value)


def _allocate(descriptor: int, size: int) -> None:
    """Room on the disk for all counts: a full disk fails here, and not where a request is counted."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)
