"""What Stoker's trainer tells the probes about its work, so that they need not detect it.

    with announced.region(announced.LOOP, batch_size=32):
        ...

If nothing is measured, nobody listens, and a region costs one dict lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

# Around a training run or an evaluation: steps are what its batch hooks report, not the calls inside it.
LOOP = "loop"
# The packages with such loops: their few reads and copies are their own, not those of the line that calls them.
LOOP_PACKAGES = ("train",)
# A call inside such a loop has run this many batches of inference, which no hook reports.
BATCHES = "batches"
# Around saving and restoring.
SAVE, RESTORE = "save", "restore"
# Around `stoker.tune`, which runs pipelines in order to time them.
TUNE = "tune"
# What `stoker.tune` found, as a record keeps it.
TUNED = "tuned"

Listener = Callable[..., AbstractContextManager[None]]
_listeners: dict[str, list[Listener]] = {}


def listen(what: str, listener: Listener) -> Callable[[], None]:
    """Enter the listener's context around every such region; returns a function that ends that."""
    _listeners.setdefault(what, []).append(listener)
    return lambda: _listeners[what].remove(listener)


@contextmanager
def region(what: str, **facts: object) -> Iterator[None]:
    """Announce a part of the trainer's work, from its beginning to its end."""
    with ExitStack() as stack:
        for listener in list(_listeners.get(what, ())):
            stack.enter_context(listener(**facts))
        yield


def tell(what: str, **facts: object) -> None:
    """Announce something that has just happened."""
    with region(what, **facts):
        pass
