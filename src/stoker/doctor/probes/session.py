"""One measured run inside the program's process: all probes, attached as TensorFlow and Keras are imported.

session = Session(start_ns=..., user_root=None)
session.watch_imports()
... the program runs ...
measurements = session.measurements()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from stoker.doctor.attach.sites import OWN_ROOT, Sites
from stoker.doctor.probes.checkpoints import Checkpoints
from stoker.doctor.probes.device import DeviceProbe
from stoker.doctor.probes.eager_ops import EagerOps
from stoker.doctor.probes.environment import Environment
from stoker.doctor.probes.graph_calls import GraphCalls
from stoker.doctor.probes.held_data import HeldData
from stoker.doctor.probes.host_sync import HostSync
from stoker.doctor.probes.import_watch import ImportWatcher
from stoker.doctor.probes.input_wait import InputWait
from stoker.doctor.probes.keras_loop import KerasLoop
from stoker.doctor.probes.measurements import Measurements
from stoker.doctor.probes.memory_book import MemoryBookProbe
from stoker.doctor.probes.pauses import Pauses
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.profiler_windows import ProfilerWindows
from stoker.doctor.probes.recorder import PYTHON, Recorder
from stoker.doctor.probes.retrace import Retrace
from stoker.doctor.probes.steps import CALLS, TAPES, TRAINING, StepCount, Steps
from stoker.doctor.probes.stretches import Reader
from stoker.doctor.probes.transfer import Transfer
from stoker.errors import StokerError
from stoker.tf_internals import functions
from stoker.tf_internals.versions import KERAS, TENSORFLOW


class Session:
    """The probes of one run."""

    def __init__(
        self,
        start_ns: int,
        user_root: str | None = None,
        software_gpu: Mapping[str, object] | None = None,
    ) -> None:
        self._software_gpu = software_gpu
        self.recorder = Recorder(start_ns, Sites(user_root))
        recorder = self.recorder
        self.steps = Steps(recorder)
        self.retrace = Retrace(recorder)
        self.eager = EagerOps(recorder, self.steps)
        self.input = InputWait(recorder)
        self.keras = KerasLoop(recorder, self.steps, self.eager)
        self.device = DeviceProbe(recorder)
        self.memory = MemoryBookProbe(recorder, self.steps, self.eager, self.device)
        self.keras.on_evaluation = self.memory.note_evaluation
        transfer = Transfer(recorder, self.steps)
        held = HeldData(recorder, self.steps.total)
        transfer.on_tensor += [self.memory.note_tensor, held.note_tensor]
        self.retrace.on_trace.append(held.note_trace)
        self.calls = GraphCalls(recorder, self.retrace, self.steps)
        self.windows = ProfilerWindows(recorder, self.steps, self.eager, self.memory, self.calls.exchanges)
        self.steps.work = lambda: self.eager.count + self.retrace.call_serial
        self.imported = False
        # Called once TensorFlow is imported.
        self.on_import: Callable[[], None] = lambda: None
        # All probes, in the order in which they attach. Add a new probe here and nowhere else.
        self.probes: tuple[Probe, ...] = (
            self.device,
            HostSync(recorder, self.steps),
            transfer,
            self.memory,
            held,
            self.retrace,
            self.calls,
            self.eager,
            self.input,
            Checkpoints(recorder),
            self.windows,
            self.keras,
            self.steps,
            Environment(recorder, self.device),
        )
        self.pauses = Pauses(recorder, self.steps, self.probes)
        self.pauses.reader_of = self._reader_of
        self.pauses.ops = lambda: self.eager.count
        self.pauses.is_held = self._needs_measuring
        # Whether steps are being recorded for experiments, one by one.
        self.is_recording: Callable[[], bool] = lambda: False

    def _reader_of(self, count: StepCount) -> Reader | None:
        """Return how to read the number of events that make the steps of a source."""
        if count.event is None:
            return (lambda: count.ticks) if isinstance(count.source, str) else None
        rank, source = count.event
        if rank == TAPES:
            return lambda: self.eager.tapes
        function = self.calls.functions.get(source) if rank in (TRAINING, CALLS) else None  # type: ignore[call-overload]
        return (lambda: function.calls) if function is not None else None

    def _needs_measuring(self) -> bool:
        """Return whether measuring must not pause now."""
        spans = self.steps.windows
        on = spans.open is not None or spans.beside is not None or self.recorder.meter is not None
        return on or self.is_recording() or self.windows.wants_turn()

    def watch_imports(self) -> None:
        """Attach when the program imports TensorFlow and Keras. Importing them counts as start-up."""
        hooks = {"tensorflow": self._attach_to_tensorflow, "keras": self._attach_to_keras}
        sys.meta_path.insert(0, ImportWatcher(hooks, self.recorder))

    def attach_now(self) -> None:
        """Attach to TensorFlow and Keras if they are already imported."""
        for name, hook in (("tensorflow", self._attach_to_tensorflow), ("keras", self._attach_to_keras)):
            module = sys.modules.get(name)
            if module is not None:
                hook(module)

    def detach(self) -> None:
        """Remove all patches, so that TensorFlow and Keras are as they were."""
        self.close()
        for probe in reversed(self.probes):
            probe.detach()

    def _attach_to_tensorflow(self, module: ModuleType) -> None:
        version = str(getattr(module, "__version__", "unknown"))
        self.recorder.versions["tensorflow"] = version
        self.imported = True
        self.recorder.rebase(PYTHON)
        if not TENSORFLOW.includes(version):
            self.recorder.note(TENSORFLOW.refusal(version))
            return
        self._bring_up_device()
        for probe in self.probes:
            self._attach(probe, probe.attach)
        self.on_import()
        functions.hide_frames("tensorflow", OWN_ROOT)

    def _bring_up_device(self) -> None:
        if self._software_gpu is None:
            return
        try:
            self.device.bring_up(self._software_gpu)
        except StokerError as error:
            self.recorder.note(f"no software GPU: {error}")

    def _attach_to_keras(self, module: ModuleType) -> None:
        version = str(getattr(module, "__version__", "unknown"))
        self.recorder.versions["keras"] = version
        if getattr(getattr(module, "config", None), "backend", lambda: "")() != "tensorflow":
            self.recorder.note("Keras does not run on TensorFlow here: its loops are not measured")
            return
        if not KERAS.includes(version):
            self.recorder.note(f"{KERAS.refusal(version)} Its loops are not measured.")
            return
        for probe in self.probes:
            self._attach(probe, probe.attach_to_keras)
        functions.hide_frames("keras", OWN_ROOT)

    def _attach(self, probe: Probe, attach: Callable[[], None]) -> None:
        try:
            attach()
        except Exception as error:  # noqa: BLE001 - a TensorFlow we do not know must still run
            probe.fail(error)

    def note_error(self, error: BaseException) -> None:
        """Keep what was in memory if the program is about to end with this error because memory ran out."""
        self.memory.call_safely(self.memory.note_failure, error, self.windows.interrupt)

    def poll(self) -> None:
        """Let the probes look at the program. Called several times a second on the heartbeat's thread."""
        if self.imported:
            self.pauses.poll()
            for probe in self.probes:
                probe.poll()

    def close(self) -> None:
        """Stop what must not outlive the program, which is ending."""
        for probe in self.probes:
            probe.close()

    def measurements(self, ended: bool = False) -> Measurements:
        """Return what every probe knows now; `ended` is whether the program has. Safe to call from another thread."""
        self.pauses.bring_up_to_date(ended)
        parts = [self.recorder.measure(ended), *(probe.measure(ended) for probe in self.probes)]
        return Measurements(part for part in parts if part is not None)
