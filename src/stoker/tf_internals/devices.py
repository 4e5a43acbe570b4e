"""Devices that are plugged in."""

from __future__ import annotations


def load_plugin(path: str) -> None:
    """Load a library of pluggable devices, which TensorFlow otherwise finds in its own package only.

    Raises:
        RuntimeError, tf.errors.OpError: TensorFlow refuses it.
    """
    from tensorflow.python.framework import load_library

    load_library.load_pluggable_device_library(path)
