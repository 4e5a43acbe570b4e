"""Hiding devices: the second one alone is visible, then, in another process, none. Facts as JSON."""

from __future__ import annotations

import json
import subprocess
import sys

from stoker.doctor import software_gpu

software_gpu.enable(count=2, memory="128MiB")

import tensorflow as tf  # noqa: E402

physical = tf.config.list_physical_devices("GPU")
if len(sys.argv) > 1:
    tf.config.set_visible_devices([], "GPU")
    print(json.dumps([len(tf.config.list_logical_devices("GPU")), (tf.constant(1.0) + 1.0).device[-5:]]))
else:
    tf.config.set_visible_devices(physical[1:], "GPU")
    logical = [device.name[-5:] for device in tf.config.list_logical_devices("GPU")]
    value = tf.constant(1.0) + tf.constant(2.0)
    assert float(value) == 3
    launches = [device.launches for device in software_gpu.counters().devices]
    command = [sys.executable, "-m", "tests.doctor.software_gpu.programs.hidden", "none"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    none, device = json.loads(output.splitlines()[-1])
    print(json.dumps({"none": none, "second_only": logical, "launches": launches, "device": device}))
