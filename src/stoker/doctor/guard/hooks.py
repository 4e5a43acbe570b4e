"""The patches behind all guards, installed while any guard is open in the process.

Each patch first looks up the guards of its context. If there are none, it calls the original directly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from stoker.doctor.attach.buffer_slot import BufferPatch
from stoker.doctor.attach.patching import Patches
from stoker.doctor.attach.sites import FRAMEWORK, INTERNAL
from stoker.doctor.guard import scope
from stoker.doctor.guard.events import SITES, Event, deliver, describe_copy, describe_read
from stoker.doctor.guard.limits import COPIES, EAGER_OPS, SYNCS
from stoker.doctor.guard.placement import Placement, WeakIds
from stoker.doctor.guard.report import GuardError
from stoker.doctor.guard.tracing import TracingHooks
from stoker.doctor.probes.host_sync import nbytes
from stoker.doctor.probes.transfer import data_size
from stoker.errors import UsageError, name_extra
from stoker.tf_internals import eager
from stoker.tf_internals.distribution import replica_thread
from stoker.tf_internals.versions import TENSORFLOW


class Hooks(Patches):
    """The patches for reads, copies and eager ops, and with them the hooks on functions, loops and threads."""

    def __init__(self) -> None:
        import numpy as np

        super().__init__()
        self._array_type = np.ndarray
        self._placement = Placement()
        # TensorFlow keeps the host's copy of a tensor, so reading the tensor again costs nothing.
        self._read = WeakIds()
        self._buffer = BufferPatch(eager.tensor_type(), self._buffer_reader, refusals=(GuardError,))
        self._tracing = TracingHooks(self._placement)

    def attach(self) -> None:
        self._read.clear()
        self._placement.begin()
        self.replace(*eager.tensor_read(), self._reader)
        self.replace(*eager.dlpack_export(), self._reader)
        self._buffer.put_in()
        self.on_detach(self._buffer.take_out)
        self.replace(*eager.host_conversion(), self._conversion)
        self.replace(*eager.op_dispatch(), self._dispatch)
        self._tracing.attach()
        self.on_detach(self._tracing.detach)
        self._carry_to_replicas()
        self._carry_to_threads()

    def _reader(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(tensor: Any, *args: Any) -> Any:
            __tracebackhide__ = True
            regions = scope.current()
            if regions:
                self._on_read(regions, tensor)
            return original(tensor, *args)

        return read

    def _buffer_reader(self, original: Callable[..., int]) -> Callable[..., int]:
        def read(tensor: Any, view: int, flags: int) -> int:
            regions = scope.current()
            if regions:
                try:
                    self._on_read(regions, tensor)
                except GuardError as error:
                    # Nothing can be raised from here. NumPy comes back through `__array__` and meets the error there;
                    # for other readers, the guard raises the error in place of their "no buffer".
                    for region in regions:
                        region.refuse(error, tensor)
                    raise
            return original(tensor, view, flags)

        return read

    def _on_read(self, regions: tuple[scope.Region, ...], tensor: Any) -> None:
        __tracebackhide__ = True
        for region in regions:
            # NumPy was refused the buffer and tries again.
            error = region.take_refusal(tensor)
            if error is not None:
                raise error
        if tensor in self._read or not self._placement.on_device(tensor):
            return
        site, _ = SITES.caller(nearer_than=FRAMEWORK)
        deliver(regions, Event(SYNCS, site, nbytes(tensor), partial(describe_read, tensor)))
        self._read.add(tensor)

    def _conversion(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def convert(value: Any, ctx: Any, dtype: Any = None) -> Any:
            __tracebackhide__ = True
            tensor = original(value, ctx, dtype)
            regions = scope.current()
            if regions:
                self._on_conversion(regions, value, tensor)
            return tensor

        return convert

    def _on_conversion(self, regions: tuple[scope.Region, ...], value: Any, tensor: Any) -> None:
        __tracebackhide__ = True
        if not self._placement.is_accelerated() and self._placement.is_pinned_to_host():
            self._placement.mark(tensor)
        if data_size(value, self._array_type) is None or not self._placement.on_device(tensor):
            return
        site, _ = SITES.caller(nearer_than=INTERNAL)
        if site is not None:
            deliver(regions, Event(COPIES, site, nbytes(tensor), partial(describe_copy, value, tensor)))

    def _dispatch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute(*args: Any) -> Any:
            __tracebackhide__ = True
            result = original(*args)
            regions = scope.current()
            if regions:
                self._placement.note_made(args, result)
                if len(regions) == 1 and not regions[0].limits_ops():
                    # Eager ops are so many that a guard without a limit on them counts them the quick way.
                    regions[0].count_op()
                else:
                    deliver(regions, Event(EAGER_OPS, SITES.caller()[0], 0, str))
            return result

        return execute

    def _carry_to_replicas(self) -> None:
        """Carry the guards to the threads in which a strategy runs each replica: those run guarded code, too."""

        def run(original: Callable[..., Any]) -> Callable[..., Any]:
            def replica(thread: Any) -> Any:
                regions = thread.__dict__.get("stoker_regions", ())
                self._tracing.silence_steps(thread.replica_id > 0)
                with scope.carry(regions):
                    return original(thread)

            return replica

        self.replace(replica_thread(), "__init__", self._remember_regions)
        self.replace(replica_thread(), "run", run)

    def _remember_regions(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(thread: Any, *args: Any, **kwds: Any) -> None:
            original(thread, *args, **kwds)
            thread.stoker_regions = scope.current()

        return init

    def _carry_to_threads(self) -> None:
        """Extend guards with `threads=True` to the threads and tasks started under them."""
        from concurrent.futures import ThreadPoolExecutor

        def submit(original: Callable[..., Any]) -> Callable[..., Any]:
            def submit_carried(pool: Any, function: Any, /, *args: Any, **kwds: Any) -> Any:
                return original(pool, _carry_regions(function), *args, **kwds)

            return submit_carried

        def start(original: Callable[..., Any]) -> Callable[..., Any]:
            def start_carried(thread: Any) -> Any:
                if _list_inherited_regions():
                    thread.run = _carry_regions(thread.run)
                return original(thread)

            return start_carried

        self.replace(ThreadPoolExecutor, "submit", submit)
        self.replace(threading.Thread, "start", start)


def _list_inherited_regions() -> tuple[scope.Region, ...]:
    """Return the regions that a new thread inherits: all of them, if one of the guards wants threads."""
    regions = scope.current()
    wanted = any(region.open and region.wants_threads() for region in regions)
    return regions if wanted else ()


def _carry_regions(function: Callable[..., Any]) -> Callable[..., Any]:
    regions = _list_inherited_regions()
    return bind(function, regions) if regions else function


def bind(function: Callable[..., Any], regions: tuple[scope.Region, ...]) -> Callable[..., Any]:
    """Wrap `function` so that it runs anywhere as if under these regions."""

    def run(*args: Any, **kwds: Any) -> Any:
        with scope.carry(regions):
            return function(*args, **kwds)

    return run


_lock = threading.Lock()
_open = 0
_hooks: Hooks | None = None


def acquire() -> None:
    """Open one more guard; the first puts the patches in.

    Raises:
        UsageError: TensorFlow is missing, or is a version the guard was not written for.
    """
    global _open, _hooks
    with _lock:
        if _hooks is None:
            _check_tensorflow()
            _hooks = Hooks()
        if _open == 0:
            try:
                _hooks.attach()
            except BaseException:
                _hooks.detach()
                raise
        _open += 1


def _check_tensorflow() -> None:
    try:
        import tensorflow
    except ModuleNotFoundError as error:
        raise name_extra("stoker.guard()", error) or error from None
    except ImportError as error:
        raise UsageError(f"the guard needs TensorFlow, which cannot be imported here: {error}") from None
    version = str(tensorflow.__version__)
    if not TENSORFLOW.includes(version):
        raise UsageError(TENSORFLOW.refusal(version))


def release() -> None:
    """Close a guard; the last one takes the patches out."""
    global _open
    with _lock:
        _open -= 1
        if _open == 0 and _hooks is not None:
            _hooks.detach()
