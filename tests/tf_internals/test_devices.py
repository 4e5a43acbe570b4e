"""Devices that are plugged in. (The software GPU's own tests load one.)"""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from stoker.tf_internals import devices


def test_load_plugin_refuses_what_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "plugin.so").write_bytes(b"no library")
    with pytest.raises((RuntimeError, tf.errors.OpError)):
        devices.load_plugin(str(tmp_path / "plugin.so"))


def test_the_build_info_is_the_one_that_others_read() -> None:
    assert tf.sysconfig.get_build_info() is tf.sysconfig.get_build_info()
    assert "is_cuda_build" in tf.sysconfig.get_build_info()


def test_every_device_has_a_limit_of_memory() -> None:
    limits = devices.memory_limits()
    assert list(limits) == [one.name.rpartition("device:")[2] for one in tf.config.list_logical_devices()]
    assert all(limit > 0 for limit in limits.values())
