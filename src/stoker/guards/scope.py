"""Who is watched: the guards and allowed regions that hold here, in this context and no other.

A context variable holds a tuple, outermost first: an entered guard, or the reason of an `allow` region. Another
thread has its own context and does not see it. A generator shares its consumer's context and may be finished in
another one, so leaving never relies on order: what was left is marked closed and passed over wherever it lingers.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeVar

from stoker.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


class Region(Protocol):
    """What the tuple holds."""

    open: bool


_regions: ContextVar[tuple[Region, ...]] = ContextVar("stoker_regions", default=())

# As bare functions: the hooks ask at every op.
current = _regions.get


def enter(region: Region) -> None:
    """Watch this context with one more region."""
    _regions.set((*[r for r in _regions.get() if r.open], region))


def leave(region: Region) -> None:
    """Close the region everywhere and forget it here."""
    region.open = False
    suspend(region)


def suspend(region: Region) -> None:
    """Forget the region here; it stays open, to be entered again."""
    _regions.set(tuple(r for r in _regions.get() if r is not region and r.open))


@contextlib.contextmanager
def carried(regions: tuple[Region, ...]) -> Any:
    """Run a block in another thread as if it stood where `regions` were taken."""
    token = _regions.set(regions)
    try:
        yield
    finally:
        _regions.reset(token)


class Allowed:
    """An open region of `allow`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.open = True


class allow:
    """A region where syncs, copies and retraces are meant: guards around it count them apart.

        with stoker.allow("log every 100 steps"):
            print(float(loss))

    Also a decorator. Without a guard it does nothing.
    """

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError('allow() wants the reason: stoker.allow("log every 100 steps")')
        self._reason = reason
        self._entered: list[Allowed] = []

    def __enter__(self) -> None:
        region = Allowed(self._reason)
        self._entered.append(region)
        enter(region)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        mine = [region for region in current() if region in self._entered]
        region = mine[-1] if mine else self._entered[-1]
        self._entered.remove(region)
        leave(region)

    def __call__(self, function: F) -> F:
        from stoker.guards.functions import watched_function

        decorated: F = watched_function(function, functools.partial(Allowed, self._reason))
        return decorated
