"""`stoker.track`: a run in the store, from its beginning to its end.

    with stoker.track("baseline", params={"rate": 1e-3}) as run:
        for step in range(steps):
            run.log(step, loss=loss)
        run.artifact("model.keras", kind="model")

What is logged goes to the writer's queue: a call takes about a microsecond, and nothing here waits for the store.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType
from typing import Any

from stoker.errors import ArgumentError, check_local_path, whole_number
from stoker.tracking.store import address as addresses
from stoker.tracking.store import around, audit, delivery, entries, fingerprints, surroundings, writer
from stoker.tracking.store.linking import MAKES, USES, linked
from stoker.tracking.store.record_files import is_id, new_id

# Steps are whole numbers of 64 bits in both databases.
_LARGEST = 2**63 - 1

_current: ContextVar[Run | None] = ContextVar("stoker_run", default=None)


def track(
    name: str, params: Mapping[str, Any] | None = None, *, store: str | None = None, kind: str = "track"
) -> Run:
    """Begin a run in the store; use it in a `with` statement, or call its `finish`.

    Args:
        name: what it is called; names need not differ.
        params: what it was run with: anything JSON can hold, and what it cannot as text.
        store: its URL, if not the one of `STOKER_STORE` or `[tool.stoker]`; "off" keeps nothing.
        kind: what kind of run it is.
    """
    return Run(name, params or {}, store=addresses.find(store), kind=kind)


def current() -> Run | None:
    """The run whose `with` block this is in."""
    return _current.get()


class Run:
    """A run that is being kept. `id` is its name in the store, "" if nothing is kept."""

    def __init__(
        self,
        name: str,
        params: Mapping[str, Any],
        *,
        store: addresses.Address | None,
        kind: str,
        run_id: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        if run_id is not None and not is_id(run_id):
            raise ArgumentError(
                f"run_id={run_id!r} must be letters, digits, '_', '-' and '.': it becomes a file name"
            )
        self.id = "" if store is None else run_id or new_id()
        self.name = name
        self.kind = kind
        self._writer = None if store is None else writer.of(store)
        self._params = entries.finite(dict(params))
        self._ended = False
        self._reading: list[_Once] = []
        self._token: Token[Run | None] | None = None
        if self._writer is not None:
            self._begin(self._writer, more or {})

    @property
    def store(self) -> addresses.Address | None:
        """Where it is kept; None if it is not."""
        return None if self._writer is None else self._writer.address

    def _begin(self, to: writer.Writer, more: Mapping[str, Any]) -> None:
        program, arguments = surroundings.program()
        now = time.time()
        columns = {
            "name": entries.text(str(self.name)),
            "kind": self.kind,
            "program": program,
            "arguments": arguments,
            "parameters": self._params,
            "versions": surroundings.versions(),
            "machine": surroundings.machine(),
            "state": "running",
            "parent": _parent(),
            "worker": _worker(),
            "started": now,
            "seen": now,
            **more,
        }
        told = {"name": self.name, "kind": self.kind, "program": program}
        begun = [
            entries.redact(entry)
            for entry in (["run", self.id, columns], audit.entry(audit.STARTED, self.id, told))
        ]
        to.open_runs[self.id] = begun
        to.put_redacted(*begun)
        # Asking git takes a while: not in the caller's time.
        to.put_later(lambda: [["change", self.id, surroundings.code()]])

    def log(self, step: int, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Keep values at a step: `run.log(step, loss=0.1)`, or `run.log(step, {"train/loss": 0.1})`.

        Raises:
            ArgumentError: a value that is no number, a step that is no whole number.
        """
        if values:
            named = {**values, **named}
        for name, value in named.items():
            if type(value) is not float:
                named[name] = _number(name, value)
        if type(step) is not int or not -_LARGEST <= step <= _LARGEST:
            step = _step(step)
        to = self._writer
        if to is None or self._ended:
            return
        to.queue.append(["values", self.id, step, time.time(), named])
        if not to.started:
            to.start()

    def params(self, **more: Any) -> None:
        """Add parameters that are known only now."""
        self._params.update(entries.finite(more))
        self.change(parameters=dict(self._params))

    def change(self, **columns: Any) -> None:
        """Change columns of the run's row."""
        self.put(["change", self.id, columns])

    def put(self, *given: entries.Entry) -> None:
        """Queue entries for this run's store."""
        if self._writer is not None:
            self._writer.put(*given)

    def artifact(
        self, path: str | os.PathLike[str], *, kind: str = "artifact", name: str | None = None
    ) -> str:
        """Note a file or a directory this run made, by its content; its hash."""
        return self._path(path, MAKES, kind, name)

    def uses(self, path: str | os.PathLike[str], *, kind: str = "data", name: str | None = None) -> str:
        """Note a file or a directory this run reads, by its content; its hash."""
        return self._path(path, USES, kind, name)

    def uses_data(self, data: Any, *, name: str = "data") -> None:
        """Note data in memory, by its content. It is read on the writer's thread, at the latest when the run ends."""
        if self._writer is None:
            return

        def known() -> list[entries.Entry]:
            return linked(self.id, USES, fingerprints.of_data(data), kind="data", name=name)

        once = _Once(known)
        self._reading.append(once)
        self._writer.put_later(once)

    def _path(self, path: str | os.PathLike[str], relation: str, kind: str, name: str | None) -> str:
        check_local_path(path)
        if self._writer is None:
            return ""
        place = Path(path).absolute()
        found = fingerprints.of_path(place)
        self.put(*linked(self.id, relation, found, kind=kind, name=name or place.name, path=str(place)))
        return found.hash

    def finish(self, state: str = "finished", *, error: str | None = None, **columns: Any) -> None:
        """The run has ended; what is logged after that is not kept."""
        if self._ended:
            return
        self._ended = True
        if self._writer is None:
            return
        # From here on, the program may change the data.
        for once in self._reading:
            once()
        self._writer.open_runs.pop(self.id, None)
        now = time.time()
        ended: list[entries.Entry] = [
            ["change", self.id, {"state": state, "error": error, "ended": now, "seen": now, **columns}],
            audit.entry(audit.ENDED, self.id, {"state": state, "error": error}),
        ]
        # After what is found out late: from its end on, a run stays as it is.
        self._writer.put_later(lambda: ended)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything logged so far is committed, or in the spool if the store cannot be written."""
        if self._writer is not None:
            self._writer.flush(timeout_s)

    def __enter__(self) -> Run:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
        self.ended_with(error)

    def ended_with(self, error: BaseException | None, **columns: Any) -> None:
        """The run has ended, well or with an exception."""
        state, message = _state(error)
        self.finish(state, error=message, **columns)


class _Once:
    """Entries that are made once, by whichever thread asks first."""

    def __init__(self, make: Callable[[], list[entries.Entry]]) -> None:
        self._make: Callable[[], list[entries.Entry]] | None = make
        self._made: list[entries.Entry] = []
        self._lock = threading.Lock()

    def __call__(self) -> list[entries.Entry]:
        with self._lock:
            if self._make is not None:
                # Forgotten first: the data it holds must not live as long as the run, whatever happens.
                make, self._make = self._make, None
                try:
                    self._made = make()
                except Exception as error:  # noqa: BLE001 - of the user's data: nothing there must end a training
                    delivery.say(f"the data of a run is not kept ({type(error).__name__}: {error})")
        return self._made


def scalars(logs: Mapping[str, Any]) -> dict[str, float]:
    """What can be logged of Keras' logs: single numbers, those in a dict by `outer/inner`."""
    found: dict[str, float] = {}
    for name, value in logs.items():
        if isinstance(value, Mapping):
            found |= {f"{name}/{inner}": number for inner, number in scalars(value).items()}
        elif isinstance(value, int | float) or getattr(value, "shape", None) == ():
            found[name] = float(value)
    return found


def _state(error: BaseException | None) -> tuple[str, str | None]:
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return "finished", None
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", None
    return "failed", f"{type(error).__name__}: {error}".splitlines()[0][:1000]


def _parent() -> str | None:
    """The run around this one: the `with stoker.track(...)` it is in, or the `stoker run` that runs the program."""
    tracked = current()
    return around.run if tracked is None else tracked.id or None


def _worker() -> int | None:
    """Which process of a distributed run this is."""
    try:
        return int(json.loads(os.environ["TF_CONFIG"])["task"]["index"])
    except (KeyError, ValueError, TypeError):
        return None


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}={value!r} must be a number: log numbers, and keep the rest as params"
        ) from None


def _step(step: Any) -> int:
    number = whole_number("step", step)
    if not -_LARGEST <= number <= _LARGEST:
        raise ArgumentError(f"step={number} does not fit into 64 bits")
    return number
