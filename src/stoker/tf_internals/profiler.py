"""TensorFlow's profiler below its public functions, and the log level of TensorFlow's C++ side."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoker.tf_internals import Place
from stoker.tf_internals.types import ProtoMessage


def new_session() -> Place:
    """Return the class of profiler sessions: `()`, with `start(directory, options)` and `stop() -> bytes`.

    `export_to_tb()` also stops a session, but writes all events into a file below the directory. `stop` leaves out the
    allocators' events.

    The public `tf.profiler.experimental.stop` always writes files.
    """
    from tensorflow.python.profiler.internal import _pywrap_profiler

    return _pywrap_profiler, "ProfilerSession"


def start_server() -> Place:
    """Return the function that `tf.profiler.experimental.server.start` calls."""
    from tensorflow.python.profiler.internal import _pywrap_profiler

    return _pywrap_profiler, "start_server"


def trace_me() -> Any:
    """Return the class that puts a mark into a trace: made with a name, ended by `Stop()`.

    The public class does more work.
    """
    from tensorflow.python.profiler.internal import _pywrap_traceme

    return _pywrap_traceme.TraceMe


def trace_parser() -> Callable[[bytes], ProtoMessage]:
    """Return the parser of the bytes that a session returns when it is stopped."""
    from tensorflow.tsl.profiler.protobuf import trace_events_pb2

    parse: Callable[[bytes], ProtoMessage] = trace_events_pb2.Trace.FromString
    return parse


def space_parser() -> Callable[[bytes], ProtoMessage]:
    """Return the parser of the files that a session exports: planes of lines of events, with their metadata."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    parse: Callable[[bytes], ProtoMessage] = xplane_pb2.XSpace.FromString
    return parse


def is_profiling() -> Callable[[], bool]:
    """Return the function that returns whether the program has started the profiler itself."""
    from tensorflow.python.profiler import profiler_v2

    return lambda: profiler_v2._profiler is not None


def log_level() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that get and set the lowest severity that TensorFlow's C++ code logs; None without them.

    They are functions of the abseil library inside TensorFlow, whose exact names contain abseil's release.
    """
    import tensorflow as tf

    for path in sorted(Path(tf.__file__).parent.glob("libtensorflow_framework.so*")):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = re.search(rb"_ZN4absl(\d+lts_\d+)14SetMinLogLevelENS0_18LogSeverityAtLeastE\0", content)
            release = found[1].decode() if found else None
        if release:
            library = ctypes.CDLL(str(path))
            set_level = library[f"_ZN4absl{release}14SetMinLogLevelENS0_18LogSeverityAtLeastE"]
            get = library[f"_ZN4absl{release}11MinLogLevelEv"]
            set_level.argtypes, set_level.restype, get.restype = [ctypes.c_int], None, ctypes.c_int
            return get, set_level
    return None
