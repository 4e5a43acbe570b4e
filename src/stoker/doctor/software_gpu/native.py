"""The plug-in's C functions and structs for ctypes: the mirror of plugin/machine.h and plugin/counters.cc."""

from __future__ import annotations

import ctypes
from pathlib import Path

from stoker.doctor.software_gpu.profiles import Profile

# TensorFlow's own work per op, which the deterministic clock charges in place of the real time: about what an op of a
# traced function costs the host on a current server.
_HOST_OP_NS = 3000.0


class PluginConfig(ctypes.Structure):
    """The settings that the plug-in receives before TensorFlow loads it."""

    _fields_ = (
        ("device_count", ctypes.c_int64),
        ("memory_bytes", ctypes.c_int64),
        ("deterministic", ctypes.c_int64),
        ("half_rate", ctypes.c_double),
        ("bfloat16_rate", ctypes.c_double),
        ("float_rate", ctypes.c_double),
        ("double_rate", ctypes.c_double),
        ("memory_rate", ctypes.c_double),
        ("bus_rate", ctypes.c_double),
        ("launch_ns", ctypes.c_double),
        ("kernel_ns", ctypes.c_double),
        ("copy_ns", ctypes.c_double),
        ("sync_ns", ctypes.c_double),
        ("host_op_ns", ctypes.c_double),
    )


class CopiesStruct(ctypes.Structure):
    """Copies in one direction."""

    _fields_ = (("count", ctypes.c_int64), ("bytes", ctypes.c_int64), ("time_ns", ctypes.c_int64))
    count: int
    bytes: int
    time_ns: int


class CountersStruct(ctypes.Structure):
    """The counters of a device, or of one thread."""

    _fields_ = (
        ("h2d", CopiesStruct),
        ("d2h", CopiesStruct),
        ("d2d", CopiesStruct),
        ("syncs", ctypes.c_int64),
        ("launches", ctypes.c_int64),
        ("clusters", ctypes.c_int64),
        ("host_ops", ctypes.c_int64),
        ("host_wait_ns", ctypes.c_int64),
        ("host_copy_ns", ctypes.c_int64),
    )
    h2d: CopiesStruct
    d2h: CopiesStruct
    d2d: CopiesStruct
    syncs: int
    launches: int
    clusters: int
    host_ops: int
    host_wait_ns: int
    host_copy_ns: int


class DeviceReading(ctypes.Structure):
    """One device's counters, with figures derived from its timeline."""

    _fields_ = (
        ("counters", CountersStruct),
        ("busy_ns", ctypes.c_int64),
        ("queued_ns", ctypes.c_int64),
        ("started", ctypes.c_int64),
    )
    counters: CountersStruct
    busy_ns: int
    queued_ns: int
    started: int


class Reading(ctypes.Structure):
    """All devices, or one thread, at one moment of the virtual clock."""

    _fields_ = (("counters", CountersStruct), ("now_ns", ctypes.c_int64), ("emulated_ns", ctypes.c_int64))
    counters: CountersStruct
    now_ns: int
    emulated_ns: int


def open_library(path: Path) -> ctypes.PyDLL:
    """Open the built plug-in. `PyDLL` keeps the interpreter lock: calls are far shorter than releasing it.

    Raises:
        OSError: the plug-in does not load, because it was built for another TensorFlow.
    """
    library = ctypes.PyDLL(str(path))
    library.stoker_gpu_now_ns.restype = ctypes.c_int64
    library.stoker_gpu_now_ns.argtypes = ()
    library.stoker_gpu_registered_kernels.restype = ctypes.c_int64
    library.stoker_gpu_configure.argtypes = (ctypes.POINTER(PluginConfig),)
    library.stoker_gpu_set_kernel_table.argtypes = (ctypes.c_char_p,)
    library.stoker_gpu_read_device.argtypes = (ctypes.c_int64, ctypes.POINTER(DeviceReading))
    # A bare address, which ctypes passes on without making an object.
    library.stoker_gpu_read.argtypes = (ctypes.c_void_p,)
    library.stoker_gpu_read_thread.argtypes = (ctypes.c_void_p,)
    library.stoker_gpu_read_thread_since.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return library


def config_of(profile: Profile, count: int, memory: int, deterministic: bool) -> PluginConfig:
    """Return a profile's figures in the plug-in's form: per nanosecond, and with the assumed efficiencies."""
    arithmetic = profile.compute_efficiency / 1e9
    return PluginConfig(
        device_count=count,
        memory_bytes=memory,
        deterministic=int(deterministic),
        half_rate=profile.float16_flops * arithmetic,
        bfloat16_rate=profile.bfloat16_flops * arithmetic,
        float_rate=profile.float32_flops * arithmetic,
        double_rate=profile.float64_flops * arithmetic,
        memory_rate=profile.memory_bandwidth * profile.memory_efficiency / 1e9,
        bus_rate=profile.bus_bandwidth * profile.bus_efficiency / 1e9,
        launch_ns=profile.launch_us * 1e3,
        kernel_ns=profile.kernel_us * 1e3,
        copy_ns=profile.copy_us * 1e3,
        sync_ns=profile.sync_us * 1e3,
        host_op_ns=_HOST_OP_NS,
    )
