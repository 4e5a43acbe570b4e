"""However a program imports it, a library name has one spelling."""

from __future__ import annotations

import pytest

from stoker.doctor.check.source.names import find_canonical_name


@pytest.mark.parametrize(
    ("dotted", "expected"),
    [
        ("tensorflow.function", "tf.function"),
        ("tensorflow.compat.v2.function", "tf.function"),
        ("tensorflow.compat.v1.Session", "tf1.Session"),
        ("tf.compat.v1.Session", "tf1.Session"),
        ("tensorflow.keras.models.Model", "keras.Model"),
        ("tensorflow.compat.v2.keras.layers.Dense", "keras.layers.Dense"),
        ("tensorflow.python.keras.layers.Dense", "keras.layers.Dense"),
        ("tf_keras.layers.Input", "keras.Input"),
        ("keras.layers.experimental.preprocessing.Rescaling", "keras.layers.Rescaling"),
        ("keras.src.trainers.trainer", "keras_src.trainers.trainer"),
        ("tensorflow.python.ops.math_ops.add", "tf_internal.ops.math_ops.add"),
        ("numpy.random.rand", "np.random.rand"),
        ("sklearn.svm.SVC", "sklearn.svm.SVC"),
    ],
)
def test_canonical(dotted: str, expected: str) -> None:
    assert find_canonical_name(dotted) == expected
