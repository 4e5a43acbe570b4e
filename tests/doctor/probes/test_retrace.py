"""What changed between two traces, in words."""

from __future__ import annotations

import pytest

from stoker.doctor.probes.retrace import ArgumentChange, _shorten, changes_between


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("TensorSpec(shape=(32, 10), dtype=tf.float32, name=None)", "float32[32, 10]"),
        ("TensorSpec(shape=(None,), dtype=tf.int64, name='x')", "int64[None]"),
        ("TensorSpec(shape=(), dtype=tf.float32, name=None)", "float32[]"),
        ("Literal[3]", "3"),
        (
            "Dict[['a', TensorSpec(shape=(2,), dtype=tf.float32, name=None)], ['b', Literal['s']]]",
            "Dict[['a', float32[2]], ['b', 's']]",
        ),
    ],
)
def test_types_read_well(text: str, plain: str) -> None:
    assert _shorten(text) == plain


def test_long_types_are_cut() -> None:
    assert len(_shorten("x" * 1000)) == 200


def test_changes_name_the_argument() -> None:
    old = {"x": ("float32[32]", False), "n": ("3", True)}
    new = {"x": ("float32[32]", False), "n": ("4", True)}
    assert changes_between(old, new) == [ArgumentChange("n", "3", "4", True)]
    assert changes_between(old, old) == []
