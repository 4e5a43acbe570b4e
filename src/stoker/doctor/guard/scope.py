"""Which guards and allowed regions are open here, in this context and no other.

A context variable holds a tuple of regions, outermost first. A region is an entered guard, or an `allow` with its
reason. Another thread has a context of its own and does not see the tuple. A generator shares its consumer's context
and may be finished in another one, so leaving never relies on order: a region that was left is marked closed, and
skipped wherever it lingers.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stoker.errors import UsageError

if TYPE_CHECKING:
    from stoker.doctor.guard.events import Event
    from stoker.doctor.guard.report import GuardError

F = TypeVar("F", bound=Callable[..., Any])


class Region:
    """An entry of the tuple. This base class is told of everything and does nothing; a guard overrides its methods."""

    def __init__(self) -> None:
        self.open = True

    def begin(self) -> None:
        """Prepare the region, which is about to be entered for the first time."""

    def end(self, error: BaseException | None) -> None:
        """Finish the region, which was left for good, by this error or without one."""

    def count(self, event: Event, reason: str | None) -> bool:
        """Count an event, which an inner region may allow for a reason, and return whether it passes a limit."""
        return False

    def act(self, event: Event) -> None:
        """Act on an event that passed the limit."""

    def limits_ops(self) -> bool:
        """Return whether eager ops are limited, so that their lines matter."""
        return False

    def count_op(self) -> None:
        """Count an eager op without its line."""

    def wants_threads(self) -> bool:
        """Return whether threads started here are watched, too."""
        return False

    def begin_step(self, rank: int, source: object) -> None:
        """Handle the beginning of a call or tape that may be a step."""

    def regrade_steps(self, rank: int, source: object) -> None:
        """Move a source to another class, known only after its first steps began."""

    def more_steps(self, source: object, steps: int) -> None:
        """Add steps to the last step, which was several at once."""

    def refuse(self, error: GuardError, tensor: Any) -> None:
        """Keep this error, if it is this guard's, because a reader of the tensor's buffer was turned away with it."""

    def take_refusal(self, tensor: Any) -> GuardError | None:
        """Return the error that waits for this tensor's next read."""
        return None


R = TypeVar("R", bound=Region)

_regions: ContextVar[tuple[Region, ...]] = ContextVar("stoker_regions", default=())

# A bare function, for speed: the hooks call it at every op.
current = _regions.get


def enter(region: Region) -> None:
    """Add a region to those of this context."""
    _regions.set((*[r for r in _regions.get() if r.open], region))


def leave(region: Region) -> None:
    """Close the region everywhere, and remove it from this context."""
    region.open = False
    suspend(region)


def suspend(region: Region) -> None:
    """Remove the region from this context. It stays open, to be entered again."""
    _regions.set(tuple(r for r in _regions.get() if r is not region and r.open))


@contextlib.contextmanager
def carry(regions: tuple[Region, ...]) -> Any:
    """Run a block in another thread as if it were where `regions` were taken."""
    token = _regions.set(regions)
    try:
        yield
    finally:
        _regions.reset(token)


class Allowed(Region):
    """An open region of `allow`."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Entrance(Generic[R]):
    """Enters a new region for every `with` block and every call of a decorated function."""

    def __init__(self, make: Callable[[], R]) -> None:
        self._make = make
        self._entered: list[R] = []

    def _enter(self) -> R:
        region = self._make()
        region.begin()
        self._entered.append(region)
        enter(region)
        return region

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        here = current()
        mine = [region for region in self._entered if region in here]
        region = max(mine, key=here.index) if mine else self._entered[-1]
        self._entered.remove(region)
        leave(region)
        region.end(error)

    def __call__(self, function: F) -> F:
        """Decorate a function: every call is a separate region."""
        from stoker.doctor.guard.functions import watch_function

        decorated: F = watch_function(function, self._make)
        return decorated


class allow(Entrance[Allowed]):
    """A region in which syncs, copies and retraces are intended. Guards around the region count them separately.

        with stoker.allow("log every 100 steps"):
            print(float(loss))

    `allow` is also a decorator. Without a guard it does nothing.
    """

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str) or not reason.strip():
            raise UsageError('allow() needs a reason: stoker.allow("log every 100 steps")')
        super().__init__(functools.partial(Allowed, reason))

    def __enter__(self) -> None:
        self._enter()
