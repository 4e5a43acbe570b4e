"""A software GPU: TensorFlow sees `/GPU:0` on a machine without a GPU.

    from stoker import software_gpu

    software_gpu.enable(count=1, memory="8GiB", profile="a100")  # before the first op
    ...                                                          # the program, unchanged
    print(software_gpu.counters().summary())

Ops give the CPU's results. Copies between host and device, waits and device memory are real to TensorFlow and counted
exactly. Device time is modelled from the profile; `docs/software-gpu.md` says what that can and cannot show. Importing
this package does not import TensorFlow.

With `stoker run --device software-gpu` the program gets the device right after `import tensorflow`, and `clock.now_ns`
becomes its virtual clock: real host time without the emulation, but with kernels, copies and waits as long as the
profile says. Every span is then in modelled time, and no probe needs to know.

| module | subject |
|---|---|
| activation, tensorflow_side | switching it on, here or in a child process; the part that touches TensorFlow |
| build, native | compiling the plug-in; its C functions for ctypes |
| profiles, reading, self_test | the modelled hardware's figures; counters; a check against the CPU |

| file in plugin/ | subject |
|---|---|
| device.cc | the StreamExecutor callbacks: platform, streams, events, waits |
| memory.cc | device memory and copies |
| clock, machine | the virtual clock; the state behind one mutex: streams as timelines, counters |
| counters.cc | the counters that Python reads |
| kernels.cc, kernel_table | one wrapper for every op a CUDA build runs on a GPU; `tools/` makes the table |
| cpu_kernel.cc, emulation.cc, cost.cc | running the CPU kernel; putting it on the timeline; FLOPs and bytes |
| layout.cc, recurrent.cc, ctc.cc | what CPUs lack: channels-first ops, cuDNN's recurrent nets, CTC loss |
| clusters.cc, graph.cc | a jit-compiled function as one launch; Grappler's layout pass off |
"""

from stoker.doctor.software_gpu.activation import (
    enable,
    enable_from_environment,
    environment_for,
    is_enabled,
    settings_of,
)
from stoker.doctor.software_gpu.build import ensure_built
from stoker.doctor.software_gpu.profiles import PROFILES, Profile
from stoker.doctor.software_gpu.reading import (
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
