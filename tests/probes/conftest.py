"""A session of real probes on the real TensorFlow, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stoker import clock
from stoker.probes.session import Session


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
