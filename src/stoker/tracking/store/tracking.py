"""`stoker.track`: a run in the store, from start to end.

    with stoker.track("baseline", params={"rate": 1e-3}) as run:
        for step in range(steps):
            run.log(step, loss=loss)
        run.artifact("model.keras", kind="model")

Logged values go to the writer's queue. A call takes about a microsecond, and nothing here waits for the store.
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
from typing import Any, SupportsFloat, TypeAlias

from stoker.errors import ArgumentError, check_local_path, describe_error, whole_number
from stoker.logs import LOGGER
from stoker.tracking.store import address as addresses
from stoker.tracking.store import audit, fingerprints, inherited, surroundings
from stoker.tracking.store.events import Event, RunChanged, RunStarted, ValuesLogged, redact
from stoker.tracking.store.linking import MAKES, USES, link_artifact
from stoker.tracking.store.plain_values import clean_text, make_plain
from stoker.tracking.store.record_files import is_id, new_id
from stoker.tracking.store.writer import StoreWriter, writer_for

# The logs that Keras gives a callback: numbers, arrays of one number, and dictionaries of those.
Logs: TypeAlias = Mapping[str, Any]
_make_tuple = tuple.__new__
# Both databases hold steps in 64 bits.
_SMALLEST, _LARGEST = 1 - 2**63, 2**63 - 1
# The exit codes of work that was asked to stop: a worker of a job that saved it, and a program that Ctrl-C ended.
_INTERRUPTED = (75, 130)

_current: ContextVar[TrackedRun | None] = ContextVar("stoker_run", default=None)


def track(
    name: str, params: Mapping[str, object] | None = None, *, store: str | None = None, kind: str = "track"
) -> TrackedRun:
    """Start a run in the store; use it in a `with` statement, or call its `finish`.

    Args:
        name: the run's name; several runs may share one.
        params: the run's parameters. What JSON cannot hold is kept as text.
        store: the URL of the store, if not that of `STOKER_STORE` or `[tool.stoker]`; "off" keeps nothing.
        kind: what kind of run it is.
    """
    return TrackedRun(name, params or {}, store=addresses.find(store), kind=kind)


def current_run() -> TrackedRun | None:
    """Return the run whose `with` block is executing."""
    return _current.get()


class TrackedRun:
    """A run that the store keeps. `id` identifies it there, and is "" if nothing is kept."""

    def __init__(
        self,
        name: str,
        params: Mapping[str, object],
        *,
        store: addresses.Address | None,
        kind: str,
        run_id: str | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        if run_id is not None and not is_id(run_id):
            raise ArgumentError(
                f"run_id={run_id!r} must consist of letters, digits, '_', '-' and '.': it becomes a file name"
            )
        self.id = "" if store is None else run_id or new_id()
        self.name = name
        self.kind = kind
        self._writer = None if store is None else writer_for(store)
        self._params = make_plain(dict(params))
        # The last step whose values a record has logged.
        self.logged_step = 0
        self._ended = False
        self._reading: list[_Once] = []
        self._token: Token[TrackedRun | None] | None = None
        if self._writer is not None:
            self._start(self._writer, more or {})

    @property
    def store(self) -> addresses.Address | None:
        """The store that keeps the run; None if nothing is kept."""
        return None if self._writer is None else self._writer.address

    def _start(self, to: StoreWriter, more: Mapping[str, object]) -> None:
        program, arguments = surroundings.find_program()
        now = time.time()
        columns = {
            "name": clean_text(str(self.name)),
            "kind": self.kind,
            "program": program,
            "arguments": arguments,
            "parameters": self._params,
            "versions": surroundings.find_versions(),
            "machine": surroundings.describe_machine(),
            "state": "running",
            "parent": _find_parent(),
            "worker": _find_worker(),
            "started": now,
            "seen": now,
            **more,
        }
        details = {"name": self.name, "kind": self.kind, "program": program}
        started = [
            redact(event)
            for event in (RunStarted(self.id, columns), audit.note(audit.STARTED, self.id, details))
        ]
        to.open_runs[self.id] = started
        to.put_redacted(*started)
        # Asking git takes a while, so the writer's thread does it.
        to.put_later(lambda: [RunChanged(self.id, dict(surroundings.describe_code()))])

    def log(
        self, step: int, values: Mapping[str, SupportsFloat] | None = None, /, **named: SupportsFloat
    ) -> None:
        """Log values at a step: `run.log(step, loss=0.1)`, or `run.log(step, {"train/loss": 0.1})`.

        Raises:
            ArgumentError: a value is not a number, or the step is not a whole number.
        """
        if values:
            named = {**values, **named}
        for name, value in named.items():
            if type(value) is not float:
                named[name] = _to_number(name, value)
        if type(step) is not int or not _SMALLEST <= step <= _LARGEST:
            step = _to_step(step)
        if self._ended or (to := self._writer) is None:
            return
        # This equals `ValuesLogged(...)` at a third of the cost: this line runs for every step of every loop.
        to.queue.append(_make_tuple(ValuesLogged, (self.id, step, time.time(), named)))
        if not to.started:
            to.start()

    def params(self, **more: object) -> None:
        """Add parameters that became known after the start."""
        self._params.update(make_plain(more))
        self.change(parameters=dict(self._params))

    def change(self, **columns: Any) -> None:
        """Change columns of the run's row."""
        self.put(RunChanged(self.id, columns))

    def put(self, *events: Event) -> None:
        """Queue events for this run's store."""
        if self._writer is not None:
            self._writer.put(*events)

    def artifact(
        self, path: str | os.PathLike[str], *, kind: str = "artifact", name: str | None = None
    ) -> str:
        """Record a file or directory that this run made, and return the hash of its content."""
        return self._link_path(path, MAKES, kind, name)

    def uses(self, path: str | os.PathLike[str], *, kind: str = "data", name: str | None = None) -> str:
        """Record a file or directory that this run reads, and return the hash of its content."""
        return self._link_path(path, USES, kind, name)

    def uses_data(self, data: object, *, name: str = "data") -> None:
        """Record data in memory by its content, which the writer's thread reads before the run ends."""
        if self._writer is None:
            return

        def link_data() -> list[Event]:
            return link_artifact(self.id, USES, fingerprints.hash_data(data), kind="data", name=name)

        once = _Once(link_data)
        self._reading.append(once)
        self._writer.put_later(once)

    def _link_path(self, path: str | os.PathLike[str], relation: str, kind: str, name: str | None) -> str:
        check_local_path(path)
        if self._writer is None:
            return ""
        place = Path(path).absolute()
        found = fingerprints.hash_path(place)
        self.put(
            *link_artifact(self.id, relation, found, kind=kind, name=name or place.name, path=str(place))
        )
        return found.hash

    def finish(self, state: str = "finished", *, error: str | None = None, **columns: Any) -> None:
        """End the run. Anything logged afterwards is not kept."""
        if self._ended:
            return
        self._ended = True
        if self._writer is None:
            return
        # Once this method returns, the program may change the data.
        for once in self._reading:
            once()
        self._writer.open_runs.pop(self.id, None)
        now = time.time()
        ended: list[Event] = [
            RunChanged(self.id, {"state": state, "error": error, "ended": now, "seen": now, **columns}),
            audit.note(audit.ENDED, self.id, {"state": state, "error": error}),
        ]
        # This is queued behind the events that are made later, because a run must not change after its end.
        self._writer.put_later(lambda: ended)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything logged so far is committed, or in the spool if the store cannot be written."""
        if self._writer is not None:
            self._writer.flush(timeout_s)

    def __enter__(self) -> TrackedRun:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
        self.finish_with(error)

    def finish_with(self, error: BaseException | None, **columns: Any) -> None:
        """End the run as finished, or as failed or interrupted by an exception."""
        state, message = _judge(error)
        self.finish(state, error=message, **columns)


class _Once:
    """Events that are made only once, by the thread that asks first."""

    def __init__(self, make: Callable[[], list[Event]]) -> None:
        self._make: Callable[[], list[Event]] | None = make
        self._made: list[Event] = []
        self._lock = threading.Lock()

    def __call__(self) -> list[Event]:
        with self._lock:
            if self._make is not None:
                # Drop the function first: it holds the data, which must not live as long as the run, whatever happens.
                make, self._make = self._make, None
                try:
                    self._made = make()
                except Exception as error:  # noqa: BLE001 - nothing in the user's data must end a training
                    LOGGER.warning("the data of a run is not kept (%s: %s)", type(error).__name__, error)
        return self._made


def scalars(logs: Logs) -> dict[str, float]:
    """Return the single numbers in Keras' logs. Those in an inner dict get names such as `outer/inner`."""
    found: dict[str, float] = {}
    for name, value in logs.items():
        if isinstance(value, Mapping):
            found |= {f"{name}/{inner}": number for inner, number in scalars(value).items()}
        elif isinstance(value, int | float) or getattr(value, "shape", None) == ():
            found[name] = float(value)
    return found


def name_end(exit_code: object) -> str:
    """Return the state of a run that ended with this exit code: of a program, or of `SystemExit`."""
    if not exit_code:
        return "finished"
    return "interrupted" if exit_code in _INTERRUPTED else "failed"


def _judge(error: BaseException | None) -> tuple[str, str | None]:
    if error is None:
        return "finished", None
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", None
    state = name_end(error.code) if isinstance(error, SystemExit) else "failed"
    if state != "failed":
        return state, None
    return "failed", describe_error(error)[:1000]


def _find_parent() -> str | None:
    """Return the run that contains this one: a `with stoker.track(...)` block, or the `stoker run` of the program."""
    tracked = current_run()
    return inherited.run if tracked is None else tracked.id or None


def _find_worker() -> int | None:
    """Return which process of a distributed run this is."""
    try:
        return int(json.loads(os.environ["TF_CONFIG"])["task"]["index"])
    except (KeyError, ValueError, TypeError):
        return None


def _to_number(name: str, value: SupportsFloat) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}={value!r} must be a number: log numbers, and keep the rest as params"
        ) from None


def _to_step(step: object) -> int:
    number = whole_number("step", step)
    if not _SMALLEST <= number <= _LARGEST:
        raise ArgumentError(f"step={number} does not fit in 64 bits")
    return number
