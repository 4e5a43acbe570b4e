"""TensorFlow's profiler below its public functions."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from stoker.tf_internals import profiler
from tests.tf_internals.calls import recorded


def test_a_session_gives_a_trace_with_marks(tmp_path: Path) -> None:
    """`new_session`, `trace_me` and `trace_parser`."""
    session = getattr(*profiler.new_session())()
    session.start(str(tmp_path), {})
    mark = profiler.trace_me()("a mark of ours")
    tf.constant(1) + 1
    mark.Stop()
    trace = profiler.trace_parser()(session.stop())
    (found,) = [event for event in trace.trace_events if event.name == "a mark of ours"]
    assert found.timestamp_ps > 0
    assert found.duration_ps > 0
    assert found.device_id in trace.devices
    assert not list(tmp_path.iterdir())


def test_a_session_exports_all_events(tmp_path: Path) -> None:
    """`space_parser`; the marks of the program are in the lines of its threads."""
    session = getattr(*profiler.new_session())()
    session.start(str(tmp_path), {})
    mark = profiler.trace_me()("a mark of ours")
    tf.constant(1) + 1
    mark.Stop()
    session.export_to_tb()
    (file,) = tmp_path.rglob("*.xplane.pb")
    space = profiler.space_parser()(file.read_bytes())
    names = {
        (line.name, plane.event_metadata[event.metadata_id].name)
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    }
    assert ("python", "a mark of ours") in names


def test_the_public_profiler_makes_its_session_there(tmp_path: Path) -> None:
    """`new_session` and `is_profiling`."""
    is_profiling = profiler.is_profiling()
    assert not is_profiling()
    with recorded(profiler.new_session()) as calls:
        tf.profiler.experimental.start(str(tmp_path))
        try:
            assert is_profiling()
        finally:
            tf.profiler.experimental.stop(save=False)
    assert len(calls) == 1
    assert not is_profiling()


def test_start_server_is_passed() -> None:
    owner, name = profiler.start_server()
    asked: list[int] = []
    original = getattr(owner, name)
    setattr(owner, name, asked.append)
    try:
        tf.profiler.experimental.server.start(6009)
    finally:
        setattr(owner, name, original)
    assert asked == [6009]


def test_log_level_is_set_and_read() -> None:
    functions = profiler.log_level()
    assert functions is not None
    get, set_level = functions
    before = get()
    set_level(3)
    try:
        assert get() == 3
    finally:
        set_level(before)
    assert get() == before
