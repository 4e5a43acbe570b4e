"""A session of real probes on the real TensorFlow, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stoker import clock
from stoker.doctor.probes.session import Session
from tests.support import HANGS_S, wait_until


@pytest.fixture
def session() -> Iterator[Session]:
    pytest.importorskip("tensorflow")
    pytest.importorskip("keras")
    session = Session(clock.now_ns(), user_root=None)
    session.attach_now()
    assert session.recorder.notes == []
    yield session
    session.detach()
    assert session.recorder.notes == []


def in_a_window(session: Session, step: Callable[[], Any], calls: int, ends: int = 0) -> None:
    """Take a window of the profiler, open for so many calls and until so many ends of steps are kept beside it."""
    # The window before had few events, so this one may stay open for more than one step.
    session.windows._events_per_s = 0.0
    thread = threading.Thread(target=session.windows._take, args=(HANGS_S,))
    thread.start()
    wait_until(lambda: session.steps.windows.beside is not None or not thread.is_alive())
    beside = session.steps.windows.beside
    while beside is not None and thread.is_alive() and (calls > 0 or len(beside.ends) < ends):
        step()
        calls -= 1
    session.windows._interrupted.set()
    thread.join()
