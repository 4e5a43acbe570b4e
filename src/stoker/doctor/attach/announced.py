"""What Stoker's own trainer tells the probes while it works, so that they need not work it out.

    with announced.region(announced.LOOP, batch_size=32):
        ...

Where nothing is measured, nobody listens, and a region costs one dict lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

# Around a training run or an evaluation: the calls inside are not steps of their own; what the batch hooks report is.
LOOP = "loop"
# The packages in which such loops are: their few reads and copies are their own, not of the line that calls them.
LOOP_PACKAGES = ("train",)
# A call inside such a loop has run so many batches of inference, of which no hook tells.
BATCHES = "batches"
# Around saving and restoring.
SAVE, RESTORE = "save", "restore"
# Around `stoker.tune`, which runs pipelines in order to time them.
TUNE = "tune"
# What it found, as a record keeps it.
TUNED = "tuned"

Listener = Callable[..., AbstractContextManager[None]]
_listeners: dict[str, list[Listener]] = {}


def listen(what: str, listener: Listener) -> Callable[[], None]:
    """Have every such region entered on the listener's side too; returns what ends that."""
    _listeners.setdefault(what, []).append(listener)
    return lambda: _listeners[what].remove(listener)


@contextmanager
def region(what: str, **facts: Any) -> Iterator[None]:
    """A part of the trainer's work."""
    with ExitStack() as stack:
        for listener in list(_listeners.get(what, ())):
            stack.enter_context(listener(**facts))
        yield


def tell(what: str, **facts: Any) -> None:
    """Something that has just happened."""
    with region(what, **facts):
        pass
