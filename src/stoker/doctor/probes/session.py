"""One measured run inside the program's process: all probes, attached as TensorFlow and Keras are imported.

session = Session(start_ns=..., user_root=None)
session.watch_imports()
... the program runs ...
measurements = session.measurements()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from stoker.doctor.attach.sites import OWN_ROOT, Sites
from stoker.doctor.probes.checkpoints import Checkpoints, KerasCheckpoints
from stoker.doctor.probes.device import SOFTWARE_GPU, DeviceProbe
from stoker.doctor.probes.eager_ops import EagerOps
from stoker.doctor.probes.environment import OtherWork, environment, workers_in_job
from stoker.doctor.probes.graph_calls import GraphCalls
from stoker.doctor.probes.host_sync import HostSync
from stoker.doctor.probes.import_watch import ImportWatcher
from stoker.doctor.probes.input_wait import InputWait
from stoker.doctor.probes.keras_loop import KerasLoop
from stoker.doctor.probes.measurements import OTHER_WORK, Measurements
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.profiler_windows import ProfilerWindows
from stoker.doctor.probes.recorder import ACCOUNT_NAMES, PYTHON, SYNC, Recorder
from stoker.doctor.probes.retrace import Retrace
from stoker.doctor.probes.steps import TAPES, Steps
from stoker.doctor.probes.transfer import Transfer
from stoker.errors import StokerError
from stoker.tf_internals import eager, functions
from stoker.tf_internals.versions import KERAS, TENSORFLOW


class Session:
    """The probes of one run."""

    def __init__(
        self,
        start_ns: int,
        user_root: str | None = None,
        software_gpu: Mapping[str, Any] | None = None,
    ) -> None:
        self._software_gpu = software_gpu
        self.recorder = Recorder(start_ns, Sites(user_root))
        recorder = self.recorder
        self.steps = Steps(recorder)
        self.retrace = Retrace(recorder)
        self.graph_calls = GraphCalls(recorder, self.retrace, self.steps)
        self.eager = EagerOps(recorder, self.steps)
        self.input = InputWait(recorder)
        self.keras = KerasLoop(recorder, self.steps, self.eager)
        self.device = DeviceProbe(recorder)
        self.windows = ProfilerWindows(recorder, self.steps, self.eager)
        self.steps.work = lambda: self.eager.count + self.retrace.call_serial
        self.imported = False
        self._facts: dict[str, str | int | float] = {}
        self._other_work = OtherWork()
        self._workers = workers_in_job()
        # Called once TensorFlow is there.
        self.on_import: Callable[[], None] = lambda: None
        self._tensorflow_probes: list[Probe] = [
            self.device,
            HostSync(recorder, self.steps),
            Transfer(recorder, self.steps),
            self.retrace,
            self.graph_calls,
            self.eager,
            self.input,
            Checkpoints(recorder),
            self.windows,
        ]
        self._keras_probes: list[Probe] = [self.keras, KerasCheckpoints(recorder)]

    def watch_imports(self) -> None:
        """Attach when the program imports TensorFlow, and Keras; both count as start-up."""
        hooks = {"tensorflow": self._tensorflow_imported, "keras": self._keras_imported}
        sys.meta_path.insert(0, ImportWatcher(hooks, self.recorder))

    def attach_now(self) -> None:
        """Attach to a TensorFlow, and a Keras, that are already imported."""
        for name, hook in (("tensorflow", self._tensorflow_imported), ("keras", self._keras_imported)):
            module = sys.modules.get(name)
            if module is not None:
                hook(module)

    def detach(self) -> None:
        """Take all patches out: TensorFlow and Keras are as they were."""
        self.close()
        for probe in reversed(self._tensorflow_probes + self._keras_probes):
            probe.detach()

    def _tensorflow_imported(self, module: ModuleType) -> None:
        version = str(getattr(module, "__version__", "unknown"))
        self.recorder.versions["tensorflow"] = version
        self.imported = True
        self.recorder.rebase(PYTHON)
        if not TENSORFLOW.includes(version):
            self.recorder.note(TENSORFLOW.refusal(version))
            return
        self._bring_up_device()
        self._attach(self._tensorflow_probes)
        self.on_import()
        functions.hide_frames("tensorflow", OWN_ROOT)

    def _bring_up_device(self) -> None:
        if self._software_gpu is None:
            return
        try:
            self.device.bring_up(self._software_gpu)
        except StokerError as error:
            self.recorder.note(f"no software GPU: {error}")

    def _keras_imported(self, module: ModuleType) -> None:
        version = str(getattr(module, "__version__", "unknown"))
        self.recorder.versions["keras"] = version
        if getattr(getattr(module, "config", None), "backend", lambda: "")() != "tensorflow":
            self.recorder.note("Keras does not run on TensorFlow here: its loops are not measured")
            return
        if not KERAS.includes(version):
            self.recorder.note(f"{KERAS.refusal(version)} Its loops are not measured.")
            return
        self._attach(self._keras_probes)
        functions.hide_frames("keras", OWN_ROOT)

    def _attach(self, probes: Sequence[Probe]) -> None:
        for probe in probes:
            try:
                probe.attach()
            except Exception as error:  # noqa: BLE001 - a TensorFlow we do not know must still run
                probe.fail(error)

    def poll(self) -> None:
        """Called several times a second on the heartbeat's thread."""
        if self.imported:
            self.device.poll()
            if self.device.kind != SOFTWARE_GPU:
                # The profiler sees the emulation, not the modelled device.
                self.windows.poll()

    def close(self) -> None:
        """No more windows: the program is ending."""
        self.windows.close()

    def _gradient_bytes(self) -> int:
        traced = [f.variable_bytes for f in self.retrace.functions.values() if f.updates_variables]
        return max([*traced, self.keras.variable_bytes])

    def measurements(self, ended: bool = False) -> Measurements:
        """A snapshot of everything. Safe to call from another thread.

        A program that `ended` with work queued on the device is not done before the device is: the host waits for it.
        """
        recorder = self.recorder
        if self.device.kind == SOFTWARE_GPU:
            # Its counters are exact at any moment: take those of this one.
            self.device.poll()
        totals, now = recorder.balances()
        if ended and recorder.queued is not None:
            queued = recorder.queued()
            totals[SYNC] += queued
            now += queued
            self.device.read_software_gpu(drained=True)
        steps_per_s, examples_per_s = self.steps.rates()
        load = self.device.gpu_load
        if self.recorder.on_main_thread():
            self.steps.settle()
        phase = self.steps.phase()
        return Measurements(
            wall_ns=now - recorder.start_ns,
            totals=dict(zip(ACCOUNT_NAMES, totals, strict=True)),
            tallies={probe: dict(tallies) for probe, tallies in list(recorder.tallies.items())},
            traced=list(self.retrace.functions.values()),
            called=list(self.graph_calls.functions.values()),
            pipelines=list(self.input.pipelines.values()),
            callbacks=list(self.keras.callbacks.values()),
            predicts=dict(self.keras.predicts),
            fits=dict(self.keras.fits),
            eager_ns=self.eager.ns,
            eager_op_ns=self.eager.op_ns,
            steps=self.steps.total(),
            steps_per_s=steps_per_s,
            examples_per_s=examples_per_s,
            windows=self.windows.summary,
            device_kind=self.device.kind,
            device_name=self.device.device_name,
            device_count=self.device.count,
            gpu_load=load[0] / load[1] if load[1] else None,
            gpu_memory_peak=self.device.gpu_memory_peak,
            device_rows=list(self.device.rows),
            versions=dict(recorder.versions),
            notes=list(recorder.notes),
            columns=dict(recorder.sites.columns),
            users_functions=frozenset(
                f.definition
                for f in self.retrace.functions.values()
                if f.definition and self.retrace.is_users(f)
            ),
            is_async=eager.is_async(),
            start_ns=recorder.start_ns,
            step_sources=phase.sources,
            trains=0 <= phase.rank <= TAPES,
            stepping_from_ns=phase.first_ns,
            stepping_to_ns=phase.last_ns,
            stepping_ns=phase.ns,
            stepping_drain_ns=phase.drain_ns,
            stepping_steps=phase.steps,
            stepping_totals=dict(zip(ACCOUNT_NAMES, phase.totals, strict=False)),
            step_times_ns=phase.times,
            windows_of_spans=self.steps.windows.all(),
            eager_ops=self.eager.count,
            eager_stacks={stack: replace(found) for stack, found in list(self.eager.stacks.items())},
            ticks=recorder.steps,
            intra_op_threads=eager.intra_op_threads(),
            gradient_bytes=self._gradient_bytes(),
            memory=list(self.device.memory.points),
            environment=self._environment(),
            tensorflow_events=list(self.windows.events),
            tunings=list(self.input.tunings),
            workers=self._workers,
        )

    def _environment(self) -> dict[str, str | int | float]:
        """Looked up once, when TensorFlow is there, but for what else the machine does."""
        if not self._facts and self.imported:
            self._facts = environment()
            if self._software_gpu is not None:
                self._facts["device profile"] = self.device.device_name
        share = self._other_work.share()
        return self._facts if share is None else {**self._facts, OTHER_WORK: share}
