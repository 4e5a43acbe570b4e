"""The memory on the device that is left for data, besides the model and its computations."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import tensorflow as tf

# The data may take this share of the free memory: the model, its gradients and the rest need theirs.
_SHARE = 0.4
# The room for data if nothing tells how large the device is.
_MODEST = 1 << 30


def room_for_data() -> int:
    """Return how many bytes of data may be on the default device."""
    there = free()
    return _MODEST if there is None else int(there * _SHARE)


def free() -> int | None:
    """Return the free memory of the default device; None if the device does not report it."""
    return _free_on_gpu() if tf.config.list_logical_devices("GPU") else _free_on_host()


def _free_on_host() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return _host_size()
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _host_size()


def _host_size() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _free_on_gpu() -> int | None:
    physical = tf.config.list_physical_devices("GPU")
    limits = tf.config.get_logical_device_configuration(physical[0]) if physical else None
    if limits and limits[0].memory_limit:
        return int(limits[0].memory_limit) * (1 << 20)
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        total = int(nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(0)).total)
        # TensorFlow takes the whole card for itself, so only the memory that it has handed out counts.
        return total - int(tf.config.experimental.get_memory_info("GPU:0")["current"])
    except (nvml.NVMLError, ValueError):
        return None
