"""A software GPU: TensorFlow sees `/GPU:0`, on a machine that has none.

    from stoker import software_gpu

    software_gpu.enable(count=1, memory="8GiB", profile="a100")  # before the first op
    ...                                                          # the program, unchanged
    print(software_gpu.counters().summary())

Ops give the CPU's results. Copies between host and device, waits and device memory are real to TensorFlow and
counted exactly; device time is modelled from the profile (`docs/software-gpu.md` says what that can and
cannot tell). Importing this package does not import TensorFlow.
"""

from stoker.software_gpu.activation import (
    enable,
    enable_from_environment,
    environment_for,
    is_enabled,
    settings_of,
)
from stoker.software_gpu.build import ensure_built
from stoker.software_gpu.profiles import PROFILES, Profile
from stoker.software_gpu.reading import (
    Copies,
    Counters,
    DeviceCounters,
    Meter,
    counters,
    now_ns,
    queue_clock,
    raw_clock,
    reset,
)

__all__ = [
    "PROFILES",
    "Copies",
    "Counters",
    "DeviceCounters",
    "Meter",
    "Profile",
    "counters",
    "enable",
    "enable_from_environment",
    "ensure_built",
    "environment_for",
    "is_enabled",
    "now_ns",
    "queue_clock",
    "raw_clock",
    "reset",
    "settings_of",
]
