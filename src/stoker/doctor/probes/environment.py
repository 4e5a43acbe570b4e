"""The environment of a run: the machine, the build of TensorFlow, and the variables that change how both behave."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

from stoker.doctor.probes.device import SOFTWARE_GPU, DeviceProbe
from stoker.doctor.probes.parts.environment import OTHER_WORK, EnvironmentPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import Recorder

# Variables that change what TensorFlow, XLA, CUDA, the allocator or the thread pools do.
_PREFIXES = (
    "TF_",
    "XLA_",
    "CUDA_",
    "NVIDIA_",
    "KERAS_",
    "OMP_",
    "KMP_",
    "MKL_",
    "ONEDNN_",
    "MALLOC_",
    "NCCL_",
)
_NAMES = ("LD_PRELOAD", "PYTHONOPTIMIZE", "PYTHONMALLOC", "PYTHONDEVMODE", "STOKER_PROFILE")
# TF_CONFIG may hold the addresses of a whole cluster; the others belong to Terraform.
_LEFT_OUT = ("TF_CONFIG", "TF_CLI_", "TF_VAR_", "TF_TOKEN_")
# Left out whatever their prefix (NVIDIA_API_KEY), because records and pages are passed on to others.
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH")
_MAX_VALUE = 200
_STAT = Path("/proc/stat")


class Environment(Probe):
    """Looks up the machine once, and watches what else it does while the program runs. It patches nothing."""

    name = "environment"

    def __init__(self, recorder: Recorder, device: DeviceProbe) -> None:
        super().__init__(recorder)
        self._device = device
        self._other_work = OtherWork()
        self._workers = workers_in_job()
        self._facts: dict[str, str | int | float] = {}

    def measure(self, ended: bool) -> EnvironmentPart:
        if not self._facts and "tensorflow" in self.recorder.versions:
            self._facts = environment()
            if self._device.kind == SOFTWARE_GPU:
                self._facts["device profile"] = self._device.device_name
            if self._workers > 1:
                self._facts["workers"] = self._workers
        share = self._other_work.share()
        facts = self._facts if share is None else {**self._facts, OTHER_WORK: share}
        return EnvironmentPart(facts, self._workers)


class OtherWork:
    """The work of the rest of the machine since this object was made: a busy machine explains a slow run."""

    def __init__(self) -> None:
        self._start = _busy_seconds()

    def share(self) -> float | None:
        """Return the share of all processors' time; None if it cannot be known."""
        now = _busy_seconds()
        if now is None or self._start is None:
            return None
        total, busy, own = (after - before for after, before in zip(now, self._start, strict=True))
        return round(min(1.0, max(0.0, (busy - own) / total)), 3) if total > 1 else None


def _busy_seconds() -> tuple[float, float, float] | None:
    """Return processor seconds: all, those spent working, and those of this process and its children."""
    try:
        fields = [int(field) for field in _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    idle = fields[3] + fields[4]
    return sum(fields) / ticks, (sum(fields) - idle) / ticks, sum(os.times()[:4])


def environment() -> dict[str, str | int | float]:
    """Return the machine, the variables, and the build of TensorFlow if it is imported."""
    facts: dict[str, str | int | float] = {
        "platform": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cores": os.cpu_count() or 0,
    }
    if sys.platform == "linux":
        facts["cores usable"] = len(os.sched_getaffinity(0))
    memory = _memory()
    if memory:
        facts["memory"] = memory
    facts |= _tensorflow_build()
    for name in sorted(os.environ):
        if matters(name):
            facts[name] = os.environ[name][:_MAX_VALUE]
    return facts


def matters(name: str) -> bool:
    """Return whether an environment variable changes what TensorFlow does, and holds no secret."""
    if name.startswith(_LEFT_OUT) or any(word in name.upper() for word in _SECRET):
        return False
    return name.startswith(_PREFIXES) or name in _NAMES


def workers_in_job() -> int:
    """Return how many processes train together, according to TF_CONFIG; 1 if it does not say."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG", "{}"))["cluster"]
        return max(1, len(cluster.get("chief", [])) + len(cluster.get("worker", [])))
    except (ValueError, KeyError, TypeError, AttributeError):
        return 1


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _tensorflow_build() -> dict[str, str | int | float]:
    """Return the build of a TensorFlow that is already imported, without importing it or starting its devices."""
    sysconfig = getattr(sys.modules.get("tensorflow"), "sysconfig", None)
    if sysconfig is None:
        return {}
    info = sysconfig.get_build_info()
    if info.get("is_rocm_build"):
        return {"TensorFlow build": "ROCm"}
    if info.get("is_cuda_build"):
        return {"TensorFlow build": f"CUDA {info.get('cuda_version')}, cuDNN {info.get('cudnn_version')}"}
    return {"TensorFlow build": "CPU only"}
