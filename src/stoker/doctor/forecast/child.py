"""The program's process: the software GPU, the hooks, the program, and the answer after its first steps."""

from __future__ import annotations

import dataclasses
import json
import os
import runpy
import sys
import threading
import types
from itertools import chain
from pathlib import Path
from typing import NoReturn

from stoker.doctor import software_gpu
from stoker.doctor.attach.patching import Replacement
from stoker.doctor.attach.sites import Sites
from stoker.doctor.forecast import batch_name, batch_place, changes
from stoker.doctor.forecast.child_request import ANSWERED, ENVIRONMENT, NO_STEP, BatchPlace, ChildRequest
from stoker.doctor.forecast.stepping import StepLimit
from stoker.doctor.forecast.trace import StepTrace, trace_events
from stoker.doctor.memory.births import Births, Scopes
from stoker.doctor.memory.events import read_events
from stoker.doctor.memory.inventory import Inventory, refresh_names
from stoker.doctor.memory.makers import MakerHooks
from stoker.doctor.memory.owners import EagerPlaces, Owners
from stoker.tf_internals import profiler

_DEVICE = "/GPU:0"


class StepRecording:
    """Records all allocations from the start of the program to the end of its first steps."""

    def __init__(self, request: ChildRequest, sites: Sites) -> None:
        self._request, self._sites = request, sites
        self._births, self._scopes = Births(), Scopes()
        self._places = EagerPlaces(sites)
        # Beside the answer: the process that asked removes both, however this process ends.
        self._folder = Path(request.answer).parent / "profile"
        self._lock = threading.Lock()
        self.steps = StepLimit(request.steps, self.finish)

    def begin(self) -> None:
        """Put the hooks in and start the profiler. The program itself is kept from starting the profiler."""
        hooks = MakerHooks(self._sites, self._births, self._scopes, lambda call, *args: call(*args))
        for place, wrap in (*hooks.for_tensorflow(), *hooks.for_keras()):
            Replacement(*place, wrap).put_in()
        self.steps.attach()
        for mark in hooks.marks(self._places):
            mark.put_in()
        self._session = getattr(*profiler.new_session())()
        self._session.start(str(self._folder), {})
        self._keep_program_from_profiling()

    def finish(self) -> NoReturn:
        """Write the trace and end the process. The first thread to get here does so."""
        self._lock.acquire()
        import tensorflow as tf

        steps = self.steps.count()
        peak = int(tf.config.experimental.get_memory_info(_DEVICE[1:])["peak"])
        self._session.export_to_tb()
        inventory = Inventory()
        refresh_names(inventory, has_keras=True)
        file = next(self._folder.rglob("*.xplane.pb"))
        found = read_events(profiler.space_parser()(file.read_bytes()))
        owners = Owners(
            inventory,
            self._places.places,
            self._sites,
            self._births,
            self._scopes,
            chain.from_iterable(found.values()),
        )
        traced = trace_events(found.get(_DEVICE, ()), owners.owner_of)
        trace = StepTrace(
            self._request.rows, peak, steps, *traced, policy=_policy(), optimizer=self._optimizer()
        )
        Path(self._request.answer).write_text(trace.to_json(), encoding="utf-8")
        _leave(ANSWERED)

    def _optimizer(self) -> str:
        seen = list(self.steps.optimizers.values())
        return type(seen[-1]).__name__ if seen else ""

    def _keep_program_from_profiling(self) -> None:
        import tensorflow as tf

        for name in ("start", "stop"):
            Replacement(tf.profiler.experimental, name, lambda original: lambda *args, **kwds: None).put_in()


def main() -> NoReturn:
    """Run the program that the request in the environment names."""
    request = ChildRequest.from_json(os.environ.pop(ENVIRONMENT))
    software_gpu.enable(memory=request.memory_bytes)
    import keras  # noqa: F401 - the hooks need it, whether the program has it or not

    sites = Sites(request.user_root)
    if request.place is None:
        batch_place.BatchSearch(sites, lambda place: _answer_place(request, place)).attach()
        _run(request, list(request.arguments))
        _leave(NO_STEP)
    recording = StepRecording(request, sites)
    recording.begin()
    batch_place.BatchChange(request.place, request.rows).attach()
    if request.change:
        changes.BY_NAME[request.change].make()
    arguments = list(request.arguments)
    if request.place.kind == "option":
        arguments = batch_name.change_arguments(request.place, request.rows, arguments)
    _run(request, arguments)
    # The program ended by itself. What it did until then is all there is to report.
    if recording.steps.count():
        recording.finish()
    _leave(NO_STEP)


def _run(request: ChildRequest, arguments: list[str]) -> None:
    """Run the program as Python does. Return when it ends by itself."""
    sys.argv = [request.program, *arguments]
    try:
        if request.is_module:
            sys.path[0] = os.getcwd()
            runpy.run_module(request.program, run_name="__main__", alter_sys=True)
        elif request.place is not None and request.place.kind == "name":
            _run_changed(request, request.place)
        else:
            sys.path[0] = str(Path(request.program).resolve().parent)
            runpy.run_path(request.program, run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise


def _run_changed(request: ChildRequest, place: BatchPlace) -> None:
    """Run the program's file with another value for the name that sets its batch."""
    sys.path[0] = str(Path(request.program).resolve().parent)
    tree = batch_name.change_source(place, request.rows, request.program)
    module = types.ModuleType("__main__")
    module.__file__ = request.program
    sys.modules["__main__"] = module
    exec(compile(tree, request.program, "exec"), vars(module))


def _answer_place(request: ChildRequest, place: BatchPlace | None) -> NoReturn:
    text = json.dumps(None if place is None else dataclasses.asdict(place))
    Path(request.answer).write_text(text, encoding="utf-8")
    _leave(ANSWERED)


def _policy() -> str:
    import keras

    return str(keras.mixed_precision.global_policy().name)


def _leave(code: int) -> NoReturn:
    """End at once: nothing that the program does from here on matters, and threads may be at work."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
