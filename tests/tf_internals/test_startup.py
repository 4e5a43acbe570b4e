"""Whether TensorFlow has read its settings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import run

pytestmark = pytest.mark.tensorflow

PROGRAM = """
from stoker.tf_internals.startup import has_started
before = has_started()
import tensorflow as tf
imported = has_started()
tf.config.list_logical_devices()
print(before, imported, has_started())
"""


def test_tensorflow_starts_when_it_looks_for_devices(tmp_path: Path) -> None:
    (tmp_path / "start.py").write_text(PROGRAM)
    assert run([sys.executable, "start.py"], tmp_path).stdout == "False False True\n"
