"""Eager tensors, ops, tapes and the runtime's state."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import eager
from tests.support import run
from tests.tf_internals.calls import recorded

_STARTING = """
import json, sys
from stoker.tf_internals import eager
told = {"before import": eager.has_started(), "imported": "tensorflow" in sys.modules}
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(3)
owner, name = eager.context_creation()
original, made = getattr(owner, name), []
setattr(owner, name, lambda *args: made.append(args) or original(*args))
told |= {"imported only": eager.has_started(), "threads before": eager.intra_op_threads(), "seed": eager.global_seed()}
tf.random.set_seed(7)
tf.constant(1)
told |= {"after": eager.has_started(), "made": len(made)}
told |= {"threads": eager.intra_op_threads(), "set": eager.global_seed()}
print(json.dumps(told))
"""


def test_starting_is_seen_without_causing_it(tmp_path: Path) -> None:
    """`has_started`, `context_creation`, `intra_op_threads` and `global_seed` in a new process."""
    done = run([sys.executable, "-c", _STARTING], tmp_path)
    assert json.loads(done.stdout) == {
        "before import": False,
        "imported": False,
        "imported only": False,
        "threads before": 0,
        "seed": None,
        "after": True,
        "made": 1,
        "threads": 3,
        "set": 7,
    }


def test_tensor_type_is_that_of_a_constant() -> None:
    assert type(tf.constant(1)) is eager.tensor_type()


@pytest.mark.parametrize("read", [lambda t: t.numpy(), float, int, bool, str, repr, lambda t: f"{t:.1f}"])
def test_tensor_read_is_passed_by_every_read(read: Callable[[Any], Any]) -> None:
    tensor = tf.constant(1.0)
    with recorded(eager.tensor_read()) as calls:
        read(tensor)
    assert calls
    assert calls[0][0] is tensor


def test_dlpack_export_is_passed() -> None:
    tensor = tf.constant([1.0])
    with recorded(eager.dlpack_export()) as calls:
        tf.experimental.dlpack.to_dlpack(tensor)
    assert [args[0] is tensor for args in calls] == [True]


def test_host_conversion_takes_value_context_and_type() -> None:
    array: Any = np.ones(3, np.float32)
    with recorded(eager.host_conversion()) as calls:
        tf.constant(array)
    assert calls[0][0] is array
    assert calls[0][1] is eager.current_context()
    assert len(calls[0]) in (2, 3)


def test_op_dispatch_is_told_the_op_and_its_inputs() -> None:
    one = tf.constant(1.0)
    with recorded(eager.op_dispatch()) as calls:
        result = tf.nn.relu(one)
    assert result == 1
    assert [args[1] for args in calls[:1]] == ["Relu"]
    assert calls[0][3] is one


def test_op_execution_runs_compiled_functions() -> None:
    double = tf.function(lambda x: 2 * x)
    double(tf.constant(1.0))
    with recorded(eager.op_execution()) as calls:
        double(tf.constant(1.0))
    assert len(calls) == 1


def test_variable_updates_are_told_the_variable() -> None:
    variable = tf.Variable(1.0)
    for place, update in zip(eager.variable_updates(), ("assign", "assign_add", "assign_sub"), strict=True):
        with recorded(place) as calls:
            getattr(variable, update)(2.0)
        assert calls[0][0] is variable


def test_function_execution_is_told_the_name_in_bytes() -> None:
    double = tf.function(lambda x: 2 * x)
    double(tf.constant(1.0))
    with recorded(eager.function_execution()) as calls:
        double(tf.constant(1.0))
    ((_, name, *_),) = calls
    assert isinstance(name, bytes)


def test_is_async_follows_the_program() -> None:
    tf.constant(1)
    assert not eager.is_async()
    tf.config.experimental.set_synchronous_execution(False)
    try:
        assert eager.is_async()
    finally:
        tf.config.experimental.set_synchronous_execution(True)


def test_thread_state_names_the_device_of_each_thread() -> None:
    state, elsewhere = eager.thread_state(), list[str]()
    with tf.device("CPU:0"):
        assert "CPU:0" in state.device_name
        thread = threading.Thread(target=lambda: elsewhere.append(state.device_name))
        thread.start()
        thread.join()
    assert not state.device_name
    assert elsewhere == [state.device_name]


def test_is_recording_while_a_tape_is_open() -> None:
    tape = tf.GradientTape()
    assert not eager.is_recording(tape)
    with tape:
        assert eager.is_recording(tape)
    assert not eager.is_recording(tape)


def test_ops_run_at_once_unless_they_are_traced() -> None:
    traced = []

    @tf.function
    def note() -> None:
        traced.append(eager.is_eager())

    note()
    assert (eager.is_eager(), traced) == (True, [False])


def test_a_variable_passes_where_it_is_made() -> None:
    """`variable_creation` and `variable_type`."""
    with recorded(eager.variable_creation()) as calls:
        made = tf.Variable([1.0, 2.0])
    assert [call[0] is made for call in calls] == [True]
    assert isinstance(made, eager.variable_type())
