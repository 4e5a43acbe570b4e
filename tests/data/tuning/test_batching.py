"""Every rule for an operation gives the bits of the operation on one element, odd values and all shapes included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.data.tuning import comparing
from stoker.data.tuning.batching import rewrite_for_batches
from stoker.data.tuning.batching_rules import EXACT, RULES
from stoker.data.tuning.emitting import NotProven

pytestmark = pytest.mark.filterwarnings("ignore")
ODD = [
    np.nan,
    -0.0,
    0.0,
    np.inf,
    -np.inf,
    1e-45,
    -1e-40,
    3e38,
    -3e38,
    0.5,
    -1.5,
    2.5,
    255.0,
    2.0**31,
    -(2.0**33),
]
RANDOM = np.random.default_rng(7)


def compared(ds: Any, function: Any, batch: int = 32) -> tuple[str | None, bool]:
    """The first difference between a map before and behind a batch, and whether it is said to be exact."""
    before = ds.map(function)
    of_batch, exact = rewrite_for_batches(before._map_func)
    after = ds.batch(batch).map(of_batch)
    return comparing.difference(before.batch(batch), after, 10_000, epochs=1), all(exact)


def values(dtype: str, shape: tuple[int, ...]) -> Any:
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind == "f":
            pool = np.concatenate([np.array(ODD), RANDOM.normal(size=60) * 100]).astype(dtype)
        else:
            pool = np.concatenate([np.arange(9), RANDOM.integers(-50, 50, 60)]).astype(dtype)
    return RANDOM.choice(pool, (131, *shape))


FLOAT_OPS = str.split("Abs Ceil Floor IsFinite IsInf IsNan Neg OnesLike Round Sqrt Square ZerosLike")
INTEGER_OPS = str.split("Abs Invert Neg Relu Sign Square ZerosLike")
BINARY_FLOAT = str.split("AddV2 DivNoNan Equal FloorDiv FloorMod Greater Less Mul NotEqual RealDiv Sub")
BINARY_INTEGER = str.split("AddV2 BitwiseAnd BitwiseXor Maximum Minimum Mul Sub GreaterEqual LessEqual")


@pytest.mark.parametrize("shape", [(), (3,), (37,)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_what_is_computed_value_by_value(dtype: str, shape: tuple[int, ...]) -> None:
    floats = dtype.startswith("float")

    def all_of_them(x: Any, y: Any) -> dict[str, Any]:
        raw = tf.raw_ops
        made = {}
        for name in FLOAT_OPS if floats else INTEGER_OPS:
            argument = {"Relu": "features"}.get(name, "x")
            made[name] = getattr(raw, name)(**{argument: x})
        for name in BINARY_FLOAT if floats else BINARY_INTEGER:
            made[f"{name} of two"] = getattr(raw, name)(x=x, y=y)
            made[f"{name} of a constant"] = getattr(raw, name)(x=x, y=tf.constant(3, x.dtype))
        made["to float"] = tf.cast(x, tf.float32)
        made["chosen"] = tf.where(x > y, x, tf.constant(7, x.dtype))
        return made

    ds = tf.data.Dataset.from_tensor_slices((values(dtype, shape), values(dtype, shape)))
    assert compared(ds, all_of_them) == (None, True)


MOVED = {
    "Bitcast": lambda x: tf.bitcast(x, tf.uint8),
    "BroadcastTo": lambda x: tf.broadcast_to(x[0, 0], [3, 2]),
    "ConcatV2": lambda x: tf.concat([x, x * 2, tf.zeros([1, 6])], 0),
    "ConcatV2 from the end": lambda x: tf.concat([x, tf.zeros([4, 2])], -1),
    "ExpandDims": lambda x: tf.expand_dims(x, 1),
    "GatherV2": lambda x: tf.gather(x, [3, 0], axis=0) + 0.0,
    "GatherV2 of a table": lambda x: tf.gather(tf.range(10.0), tf.cast(tf.abs(x), tf.int32) % 10),
    "OneHot": lambda x: tf.one_hot(tf.cast(x[0], tf.int32) % 5, 5, axis=0),
    "Pack": lambda x: tf.stack([x, x + 1, tf.zeros([4, 6])], axis=1),
    "Pad": lambda x: tf.pad(x, [[1, 0], [0, 2]]),
    "MirrorPad": lambda x: tf.pad(x, [[1, 0], [0, 2]], "REFLECT"),
    "Reshape": lambda x: tf.reshape(x, [-1, 3, 2]),
    "Reshape to one": lambda x: tf.reshape(x, [-1]),
    "ReverseV2": lambda x: tf.reverse(x, [0, -1]),
    "Shape": lambda x: x[: tf.shape(x)[1] // 2],
    "Slice": lambda x: tf.slice(x, [1, 2], [-1, 3]),
    "Split": lambda x: tuple(tf.split(x, 2, axis=0)),
    "SplitV": lambda x: tuple(tf.split(x, [1, 5], axis=1)),
    "Squeeze": lambda x: tf.squeeze(x[:, tf.newaxis], 1),
    "Squeeze all": lambda x: tf.squeeze(x[tf.newaxis, :, tf.newaxis]),
    "StridedSlice": lambda x: (x[1], x[..., 2:], x[::-2, tf.newaxis, :3], x[-1:, 0]),
    "Tile": lambda x: tf.tile(x, [2, 1]),
    "Transpose": lambda x: tf.transpose(x),
    "Unpack": lambda x: tuple(tf.unstack(x, axis=0)),
    "All": lambda x: (tf.reduce_all(x > 0, axis=0), tf.reduce_any(x > 0)),
    "Sum of whole numbers": lambda x: tf.reduce_sum(tf.cast(x, tf.int32), axis=[0]),
    "AddN": lambda x: tf.add_n([tf.cast(x, tf.int32), tf.ones([4, 6], tf.int32)]),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_is_moved_about(name: str) -> None:
    ds = tf.data.Dataset.from_tensor_slices(RANDOM.normal(size=(70, 4, 6)).astype(np.float32) * 9)
    assert compared(ds, MOVED[name]) == (None, True)


def test_text() -> None:
    words = np.array([f" Word {i} " for i in range(70)])

    def of_text(word: Any) -> tuple[Any, ...]:
        lower = tf.strings.lower(tf.strings.strip(word))
        number = tf.strings.to_number(tf.strings.regex_replace(lower, "word ", ""))
        joined = tf.strings.join([lower, "!", word])
        return lower, number, joined, tf.strings.length(word), tf.strings.to_hash_bucket_fast(word, 9)

    assert compared(tf.data.Dataset.from_tensor_slices(words), of_text) == (None, True)


@pytest.mark.parametrize(
    "function", [tf.exp, tf.math.rsqrt, tf.nn.relu, lambda x: tf.maximum(x, 0.0), tf.reduce_mean]
)
def test_what_may_be_rounded_differently_is_not_called_exact(function: Any) -> None:
    ds = tf.data.Dataset.from_tensor_slices(np.abs(RANDOM.normal(size=(70, 5)).astype(np.float32)))
    of_batch, exact = rewrite_for_batches(ds.map(function)._map_func)
    after = ds.batch(32).map(of_batch)
    assert exact == [False]
    assert comparing.difference(ds.map(function).batch(32), after, 9, 1, comparing.LAST_PLACE) is None


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: tf.gather(tf.ones([3, 9]), tf.cast(x, tf.int32), axis=1), "inner axis"),
        (lambda x: tf.reshape(x, [tf.cast(x[0], tf.int32) * 0 + 4]), "between elements"),
        (lambda x: tf.signal.fft(tf.cast(x, tf.complex64)), "no rule for FFT"),
    ],
)
def test_what_has_no_rule_says_so(function: Any, why: str) -> None:
    ds = tf.data.Dataset.from_tensor_slices(np.ones((9, 4), np.float32))
    mapped = ds.map(function)
    of_batch, _ = rewrite_for_batches(mapped._map_func)
    with pytest.raises(NotProven, match=why):
        ds.batch(4).map(of_batch)


def test_exact_operations_have_rules() -> None:
    assert EXACT - set(RULES) == {"Const", "NoOp", "Placeholder", "Range"}
