"""The device: what the program computes on, and the load and memory of NVIDIA GPUs as the driver reports them.

Nothing here touches TensorFlow before the program does, because listing devices would initialise them.
"""

from __future__ import annotations

import dataclasses
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from stoker import clock
from stoker.doctor.probes.memory import MemoryHistory, resident_bytes
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import STARTUP, Recorder
from stoker.tf_internals import eager

T = TypeVar("T")
SOFTWARE_GPU = "SOFTWARE_GPU"


class DeviceProbe(Probe):
    """Identifies the device once TensorFlow has one. Samples NVML, or reads the software GPU's own counters."""

    name = "device"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.kind = "CPU"
        self.device_name = cpu_name()
        self.count = 1
        # The sum of all samples of the load, and their number.
        self.gpu_load: tuple[float, float] = (0.0, 0.0)
        self.gpu_memory_peak = 0
        self.memory = MemoryHistory()
        # The software GPU's counters, one row per device.
        self.rows: list[dict[str, Any]] = []
        self._known = False
        self._handles: list[object] = []
        self._nvml: ModuleType | None = None

    def attach(self) -> None:
        # Devices come up with the first op. That is start-up, not the op's cost.
        self.replace(*eager.context_creation(), self._start_up)

    def bring_up(self, settings: Mapping[str, Any]) -> None:
        """Give the program a software GPU before its first op. From here on, the clock is the model's."""
        # Imported here: most programs have no software GPU, and would have to wait for this at their start.
        from stoker.doctor import software_gpu
        from stoker.doctor.software_gpu import profiles

        software_gpu.enable(**settings)
        clock.now_ns = software_gpu.raw_clock()
        self.recorder.meter = software_gpu.Meter()
        self.recorder.queued = software_gpu.queue_clock()
        self.kind, self.count, self._known = SOFTWARE_GPU, int(settings["count"]), True
        self.device_name = profiles.device_name(software_gpu.counters().profile)
        self.recorder.note(
            "device time is modelled, not measured: counts and bytes are exact, seconds are what the profile says"
        )

    def _start_up(self, original: Callable[..., T]) -> Callable[..., T]:
        recorder = self.recorder

        def new_context(*args: object) -> T:
            if not self.active or not recorder.on_main_thread():
                return original(*args)
            recorder.enter(STARTUP)
            try:
                return original(*args)
            finally:
                recorder.leave()

        return new_context

    def poll(self) -> None:
        if self.active:
            self.call_safely(self._look)

    def measure(self, ended: bool) -> DevicePart:
        if self.kind == SOFTWARE_GPU:
            # Its counters are exact at any moment, so read them at this one.
            self.poll()
            if ended:
                self._read_software_gpu(drained=True)
        load, samples = self.gpu_load
        return DevicePart(
            self.kind,
            self.device_name,
            self.count,
            load=load / samples if samples else None,
            memory_peak=self.gpu_memory_peak,
            memory=list(self.memory.points),
            rows=list(self.rows),
            is_async=eager.is_async(),
            intra_op_threads=eager.intra_op_threads(),
        )

    def _look(self) -> None:
        if not self._known and eager.has_started():
            self._identify()
        in_use = self._sample()
        since_s = (clock.now_ns() - self.recorder.start_ns) / 1e9
        self.memory.add(since_s, resident_bytes(), in_use)

    def _identify(self) -> None:
        import tensorflow as tf

        self._known = True
        gpus = tf.config.list_logical_devices("GPU")
        if not gpus:
            return
        physical = tf.config.list_physical_devices("GPU")
        details = tf.config.experimental.get_device_details(physical[0]) if physical else {}
        self.kind, self.count = "GPU", len(gpus)
        self.device_name = str(details.get("device_name", "GPU"))
        self._open_nvml()

    def _open_nvml(self) -> None:
        try:
            import pynvml
        except ImportError:
            self.recorder.note("install nvidia-ml-py to see the GPU's own load and memory")
            return
        try:
            pynvml.nvmlInit()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        except pynvml.NVMLError as error:
            self.recorder.note(f"the GPU's driver does not answer ({error})")
            return
        self._nvml = pynvml

    def _read_software_gpu(self, drained: bool = False) -> None:
        """Read the counters as of now or, if `drained`, as of the moment when all queued work will be done."""
        from stoker.doctor import software_gpu

        counters = software_gpu.counters()
        rest = max(device.queued_s for device in counters.devices) if drained else 0.0
        busy = sum(device.busy_s + device.queued_s * drained for device in counters.devices)
        self.gpu_load = (busy / len(counters.devices) / max(1e-9, counters.wall_s + rest), 1.0)
        self.gpu_memory_peak = max(device.memory_peak for device in counters.devices)
        self.rows = [dataclasses.asdict(device) for device in counters.devices]

    def _sample(self) -> int | None:
        """Sample load and memory. Return the bytes in use on all devices; None if they do not report that."""
        if self.kind == SOFTWARE_GPU:
            self._read_software_gpu()
            return sum(int(row["memory_in_use"]) for row in self.rows)
        if self._nvml is None or not self._handles:
            return None
        in_use = 0
        for handle in self._handles:
            load, samples = self.gpu_load
            self.gpu_load = (load + self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100, samples + 1)
            used = int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)
            self.gpu_memory_peak = max(self.gpu_memory_peak, used)
            in_use += used
        return in_use


def cpu_name() -> str:
    """Return the processor's model."""
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "CPU"
