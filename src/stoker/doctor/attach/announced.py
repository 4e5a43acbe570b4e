"""The events that Stoker's trainer announces to the probes, so that they need not detect its work.

    with announced.region(announced.LOOP, batch_size=32):
        ...

Without a listener, which is the case when nothing is measured, a region costs one dict lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

# Around a training run or an evaluation: its batch hooks report the steps; the calls inside do not count as steps.
LOOP = "loop"
# The packages with such loops. The few reads and copies of these packages are not charged to the line that calls them.
LOOP_PACKAGES = ("train",)
# A call inside such a loop has run this many batches of inference, which no hook reports.
BATCHES = "batches"
# Around saving and restoring.
SAVE, RESTORE = "save", "restore"
# Around `stoker.tune`, which runs pipelines in order to time them.
TUNE = "tune"
# What `stoker.tune` found, in the form that a record keeps.
TUNED = "tuned"

Listener = Callable[..., AbstractContextManager[None]]
_listeners: dict[str, list[Listener]] = {}


def listen(what: str, listener: Listener) -> Callable[[], None]:
    """Enter the listener's context around every region of this name; return a function that stops listening."""
    _listeners.setdefault(what, []).append(listener)
    return lambda: _listeners[what].remove(listener)


@contextmanager
def region(what: str, **facts: object) -> Iterator[None]:
    """Announce a part of the trainer's work, from beginning to end."""
    with ExitStack() as stack:
        for listener in list(_listeners.get(what, ())):
            stack.enter_context(listener(**facts))
        yield


def tell(what: str, **facts: object) -> None:
    """Announce something that has just happened."""
    with region(what, **facts):
        pass
