"""Switching the software GPU on, in this process or, through the environment, in another one."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from stoker.doctor.software_gpu import native, reading
from stoker.doctor.software_gpu.build import KERNEL_TABLE, BuildError, ensure_built
from stoker.doctor.software_gpu.profiles import Profile, ProfileLike, resolve
from stoker.errors import UsageError
from stoker.units import bytes_of

ENVIRONMENT = "STOKER_SOFTWARE_GPU"
_CLOCKS = ("real", "deterministic")


@dataclass(frozen=True)
class SoftwareGpuSettings:
    """The settings of the software GPU."""

    count: int
    memory: int
    profile: Profile
    clock: str


_enabled: SoftwareGpuSettings | None = None


def is_enabled() -> bool:
    """Return whether this process has the software GPU."""
    return _enabled is not None


def enable(
    count: int = 1,
    memory: str | int = "8GiB",
    profile: ProfileLike = "a100",
    clock: str = "real",
) -> None:
    """Give TensorFlow `count` software GPUs. Call it before the first op. It builds the plug-in if necessary.

    Args:
        count: how many devices.
        memory: the memory of each device, such as "8GiB" or a number of bytes.
        profile: a name of `PROFILES`, a `Profile`, or a mapping with its fields.
        clock: "real" counts the program's own time as it is; with "deterministic", two runs of the same program take
            the same time, and Python costs nothing.

    Raises:
        UsageError: a setting is invalid, TensorFlow has already started, or the machine has a real GPU.
        BuildError: the plug-in cannot be built.
    """
    global _enabled
    settings = settings_of(count, memory, profile, clock)
    if _enabled == settings:
        return
    if _enabled is not None:
        raise UsageError(
            "the software GPU is already on with different settings, which hold for the whole process"
        )
    library_path = ensure_built()
    _check_tensorflow()
    try:
        library = native.open_library(library_path)
    except OSError as error:
        raise BuildError(
            f"the software GPU does not load ({error}): remove {library_path.parent} to build it again"
        ) from error
    config = native.config_of(settings.profile, settings.count, settings.memory, clock == "deterministic")
    library.stoker_gpu_configure(config)
    library.stoker_gpu_set_kernel_table(os.fsencode(KERNEL_TABLE))
    from stoker.doctor.software_gpu import tensorflow_side

    tensorflow_side.load_plugin(library_path, settings.count)
    if library.stoker_gpu_registered_kernels() == 0:
        raise BuildError(f"the software GPU found no kernels in {KERNEL_TABLE}: reinstall stoker")
    tensorflow_side.adapt(library, deterministic=clock == "deterministic")
    reading.attach(library, settings.profile.name, settings.count, settings.memory, clock)
    _enabled = settings


def settings_of(
    count: int, memory: str | int, profile: ProfileLike, clock: str = "real"
) -> SoftwareGpuSettings:
    """Check the settings and return them, without enabling anything.

    Raises:
        UsageError: a setting is invalid.
    """
    if not 1 <= count <= 64:
        raise UsageError(f"{count} software GPUs: choose 1 to 64")
    if clock not in _CLOCKS:
        raise UsageError(f"no clock {clock!r}: choose one of {', '.join(_CLOCKS)}")
    return SoftwareGpuSettings(count, parse_memory(memory), resolve(profile), clock)


def parse_memory(memory: str | int) -> int:
    """Return the bytes of a size such as "8GiB", "512 MiB", "16GB" or a number.

    Raises:
        UsageError: the text is not a size, or the size is below 16 MiB, with which TensorFlow cannot work.
    """
    text = str(memory).strip()
    size = bytes_of(f"{text} B" if text.isdecimal() else text)
    if size is None:
        raise UsageError(f"device memory {memory!r}: write a size such as 8GiB or 512MiB")
    if size < 16 * 1024**2:
        raise UsageError(f"device memory {memory!r} is too small for TensorFlow: use 16MiB or more")
    return size


def environment_for(
    count: int = 1,
    memory: str | int = "8GiB",
    profile: ProfileLike = "a100",
    clock: str = "real",
) -> dict[str, str]:
    """Return the environment variable that makes `enable_from_environment` do the same in another process."""
    return {ENVIRONMENT: json.dumps(asdict(settings_of(count, memory, profile, clock)))}


def enable_from_environment() -> bool:
    """Enable the software GPU if the environment asks for it, and return whether it did.

    Raises:
        UsageError, BuildError: as for `enable`, or the variable does not hold what `environment_for` writes.
    """
    text = os.environ.get(ENVIRONMENT)
    if not text:
        return False
    try:
        values = json.loads(text)
        enable(values["count"], values["memory"], values["profile"], values["clock"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"{ENVIRONMENT} holds no settings of the software GPU: {text!r}") from error
    return True


def _check_tensorflow() -> None:
    from stoker.doctor.software_gpu import tensorflow_side

    if tensorflow_side.has_started():
        raise UsageError("TensorFlow has already started: enable the software GPU before the first op")
    real = tensorflow_side.gpus()
    if real:
        raise UsageError(
            f"this machine has a GPU of its own ({real[0]}): hide it with CUDA_VISIBLE_DEVICES=-1"
        )
