"""Every case on the CPU and on the software GPU: the largest differences, as JSON."""

from __future__ import annotations

import json
from typing import Any

from stoker.doctor import software_gpu

software_gpu.enable(memory="2GiB")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tests.doctor.software_gpu.programs.parity_cases import CASES, Case  # noqa: E402


def evaluate(case: Case, device: str) -> tuple[list[Any], list[Any], int]:
    """Results, gradients, and how many kernels the device launched for the results."""
    software_gpu.reset()
    with tf.device(device), tf.GradientTape() as tape:
        arguments = [tf.constant(a) for a in case.arguments]
        watched = [a for a in arguments if a.dtype.is_floating]
        tape.watch(watched)
        results = [tf.convert_to_tensor(r) for r in tf.nest.flatten(case.call(*arguments))]
        launches = software_gpu.counters().launches
        score = tf.add_n(
            [tf.reduce_sum(tf.cast(r, tf.float32) * 0.5) for r in results if r.dtype.is_floating] or [0.0]
        )
    gradients = tape.gradient(score, watched, unconnected_gradients="zero") if case.gradient else []
    dense = [tf.convert_to_tensor(g) for g in gradients]
    return [r.numpy() for r in results], [g.numpy() for g in dense], launches


def difference(ours: list[Any], theirs: list[Any]) -> float:
    assert len(ours) == len(theirs)
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape, (a.shape, b.shape)
        assert a.dtype == b.dtype, (a.dtype, b.dtype)
        if a.size:
            a, b = a.astype(np.complex128), b.astype(np.complex128)
            worst = max(worst, float(np.max(np.abs(a - b) / (1 + np.abs(b)))))
    return worst


def compare(case: Case) -> dict[str, Any]:
    try:
        expected, expected_gradients, _ = evaluate(case, "/CPU:0")
        got, gradients, launches = evaluate(case, "/GPU:0")
        return {
            "forward": difference(got, expected),
            "gradient": difference(gradients, expected_gradients),
            "launches": launches,
        }
    except (tf.errors.OpError, AssertionError, ValueError, TypeError, LookupError, AttributeError) as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}


print(json.dumps({case.name: compare(case) for case in CASES}))
