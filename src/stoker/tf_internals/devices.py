"""Devices: loading plugins, and how much memory each device may use."""

from __future__ import annotations


def load_plugin(path: str) -> None:
    """Load a library of pluggable devices, which TensorFlow otherwise finds only in its own package.

    Raises:
        RuntimeError, tf.errors.OpError: TensorFlow refuses the library.
    """
    from tensorflow.python.framework import load_library

    load_library.load_pluggable_device_library(path)


def memory_limits() -> dict[str, int]:
    """Return the bytes of memory that TensorFlow may use, by device name such as "GPU:0".

    A CPU's number means nothing.
    """
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.eager import context

    current = context.context()
    current.ensure_initialized()
    devices = pywrap_tfe.TFE_ContextListDevices(current._context_handle)
    numbers = range(pywrap_tf_session.TF_DeviceListCount(devices))
    names = [str(pywrap_tf_session.TF_DeviceListName(devices, number)) for number in numbers]
    limits = [int(pywrap_tf_session.TF_DeviceListMemoryBytes(devices, number)) for number in numbers]
    return {name.rpartition("device:")[2]: limit for name, limit in zip(names, limits, strict=True)}
