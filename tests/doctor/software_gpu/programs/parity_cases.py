"""The ops of the parity sweep: their names, how to call them, and with which arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class Case:
    """One op on some arguments. Its results are compared, and the gradients of all float arguments."""

    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    gradient: bool = True


_random = np.random.RandomState(7)


def floats(*shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = _random.uniform(low, high, shape).astype(np.float32)
    return values


def positive(*shape: int) -> np.ndarray[Any, Any]:
    return floats(*shape, low=0.1, high=0.9)


def _unary() -> list[Case]:
    anywhere = (
        "abs asinh atan cos cosh erf erfc exp expm1 negative sigmoid sign sin sinh softplus softsign square "
        "tan tanh floor ceil round rint identity zeros_like ones_like reverse_sum cumsum cumprod "
        "is_nan is_inf is_finite"
    )
    inside = "acos asin atanh log log1p sqrt rsqrt lgamma digamma reciprocal ndtri erfinv"
    special: dict[str, Any] = {
        "reverse_sum": lambda x: tf.reverse(x, [0]) * 2.0,
        "reciprocal": tf.math.reciprocal,
        "identity": tf.identity,
        "zeros_like": tf.zeros_like,
        "ones_like": tf.ones_like,
    }

    def find(name: str) -> Any:
        return special.get(name) or getattr(tf.math, name)

    cases = [Case(name, find(name), (floats(3, 4),)) for name in anywhere.split()]
    cases += [Case(name, find(name), (positive(3, 4),)) for name in inside.split()]
    cases.append(Case("acosh", tf.math.acosh, (floats(3, 4, low=1.5, high=3.0),)))
    for name in ("relu", "relu6", "elu", "selu", "leaky_relu", "softmax", "log_softmax", "silu", "gelu"):
        cases.append(Case(name, getattr(tf.nn, name), (floats(3, 4),)))
    return cases


def _binary() -> list[Case]:
    names = "add subtract multiply divide maximum minimum squared_difference atan2 pow floormod floordiv"
    names += " xdivy xlogy"
    cases = [Case(n, getattr(tf.math, n), (positive(3, 4), positive(1, 4))) for n in names.split()]
    for name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"):
        cases.append(Case(name, getattr(tf.math, name), (floats(3, 4), floats(3, 4)), gradient=False))
    for name in ("igamma", "igammac", "zeta", "polygamma", "betainc"):
        arguments: tuple[Any, ...] = (positive(4), positive(4) + np.float32(1))
        if name == "zeta":
            arguments = (positive(4) + np.float32(2), positive(4))
        if name == "polygamma":
            arguments = (np.array([1, 2, 3, 1], np.float32), positive(4))
        if name == "betainc":
            arguments = (positive(4), positive(4), positive(4))
        cases.append(Case(name, getattr(tf.math, name), arguments, gradient=name == "igamma"))
    booleans = (np.array([True, False, True]), np.array([True, True, False]))
    cases += [
        Case("logical_and", tf.logical_and, booleans, gradient=False),
        Case("logical_or", tf.logical_or, booleans, gradient=False),
        Case("logical_not", tf.logical_not, booleans[:1], gradient=False),
        Case("where", tf.where, (floats(3, 4) > 0, floats(3, 4), floats(3, 4))),
        Case("where_indices", tf.where, (floats(3, 4) > 0,), gradient=False),
        Case("clip_by_value", lambda x: tf.clip_by_value(x, -0.5, 0.5), (floats(3, 4),)),
        Case("clip_by_norm", lambda x: tf.clip_by_norm(x, 0.5), (floats(3, 4),)),
        Case("add_n", lambda a, b: tf.add_n([a, b]), (floats(3, 4), floats(3, 4))),
        Case(
            "bitwise_and", tf.bitwise.bitwise_and, (np.arange(5), np.arange(5)[::-1].copy()), gradient=False
        ),
        Case(
            "bitwise_xor", tf.bitwise.bitwise_xor, (np.arange(5), np.arange(5)[::-1].copy()), gradient=False
        ),
        Case("cast", lambda x: tf.cast(x, tf.float64), (floats(3, 4),)),
        Case("cast_half", lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), (floats(3, 4),)),
        Case("add_int64", tf.add, (np.arange(5), np.arange(5)), gradient=False),
    ]
    return cases


def _reductions() -> list[Case]:
    names = "sum mean max min prod logsumexp std variance euclidean_norm"
    cases = [
        Case(f"reduce_{n}", partial(getattr(tf.math, f"reduce_{n}"), axis=1), (positive(3, 4),))
        for n in names.split()
    ]
    return cases + [
        Case("reduce_all", tf.reduce_all, (floats(3, 4) > 0,), gradient=False),
        Case("reduce_any", tf.reduce_any, (floats(3, 4) > 0,), gradient=False),
        Case("argmax", tf.argmax, (floats(3, 4),), gradient=False),
        Case("argmin", tf.argmin, (floats(3, 4),), gradient=False),
        Case("top_k", lambda x: tf.math.top_k(x, 3), (floats(3, 8),)),
        Case("sort", tf.sort, (floats(3, 8),)),
        Case("argsort", tf.argsort, (floats(3, 8),), gradient=False),
        Case("in_top_k", lambda x: tf.math.in_top_k([1, 2, 0], x, 2), (floats(3, 4),), gradient=False),
        Case("l2_normalize", lambda x: tf.math.l2_normalize(x, axis=1), (floats(3, 4),)),
        Case("norm", tf.norm, (floats(3, 4),)),
        Case("moments", lambda x: tf.nn.moments(x, [0]), (floats(3, 4),)),
        Case(
            "bincount", lambda x: tf.math.bincount(x, minlength=5), (np.array([1, 2, 2, 4], np.int32),), False
        ),
        Case(
            "unsorted_segment_sum", lambda x: tf.math.unsorted_segment_sum(x, [0, 1, 0], 2), (floats(3, 4),)
        ),
        Case(
            "unsorted_segment_max", lambda x: tf.math.unsorted_segment_max(x, [0, 1, 0], 2), (floats(3, 4),)
        ),
        Case("segment_sum", lambda x: tf.math.segment_sum(x, [0, 0, 1]), (floats(3, 4),)),
        Case("segment_mean", lambda x: tf.math.segment_mean(x, [0, 0, 1]), (floats(3, 4),)),
    ]


def _shapes() -> list[Case]:
    x = floats(3, 4)
    index = np.array([2, 0])
    return [
        Case("reshape", lambda a: tf.reshape(a, [4, 3]), (x,)),
        Case("transpose", tf.transpose, (x,)),
        Case("transpose_4d", lambda a: tf.transpose(a, [0, 3, 1, 2]), (floats(2, 3, 4, 5),)),
        Case("expand_dims", lambda a: tf.expand_dims(a, 1), (x,)),
        Case("squeeze", tf.squeeze, (floats(3, 1, 4),)),
        Case("concat", lambda a, b: tf.concat([a, b], 1), (x, floats(3, 2))),
        Case("stack", lambda a, b: tf.stack([a, b], 1), (x, x)),
        Case("unstack", tf.unstack, (x,)),
        Case("split", lambda a: tf.split(a, 2, axis=1), (x,)),
        Case("split_uneven", lambda a: tf.split(a, [1, 3], axis=1), (x,)),
        Case("tile", lambda a: tf.tile(a, [2, 3]), (x,)),
        Case("repeat", lambda a: tf.repeat(a, 2, axis=0), (x,)),
        Case("pad", lambda a: tf.pad(a, [[1, 1], [0, 2]]), (x,)),
        Case("pad_reflect", lambda a: tf.pad(a, [[1, 1], [0, 2]], "REFLECT"), (x,)),
        Case("slice", lambda a: tf.slice(a, [1, 0], [2, 3]), (x,)),
        Case("strided_slice", lambda a: a[::2, 1:3], (x,)),
        Case("reverse", lambda a: tf.reverse(a, [1]), (x,)),
        Case("roll", lambda a: tf.roll(a, 1, axis=1), (x,)),
        Case("broadcast_to", lambda a: tf.broadcast_to(a, [2, 3, 4]), (x,)),
        Case("gather", lambda a: tf.gather(a, index), (x,)),
        Case("gather_axis", lambda a: tf.gather(a, index, axis=1), (x,)),
        Case("gather_nd", lambda a: tf.gather_nd(a, [[0, 1], [2, 3]]), (x,)),
        Case("boolean_mask", lambda a: tf.boolean_mask(a, [True, False, True]), (x,)),
        Case("scatter_nd", lambda a: tf.scatter_nd([[0], [2], [4]], a, [6, 4]), (x,)),
        Case("tensor_scatter_add", lambda a: tf.tensor_scatter_nd_add(a, [[1]], a[:1]), (x,)),
        Case("tensor_scatter_update", lambda a: tf.tensor_scatter_nd_update(a, [[1]], a[:1]), (x,)),
        Case("one_hot", lambda i: tf.one_hot(i, 5), (np.array([1, 4, 0]),), False),
        Case("range", lambda: tf.range(0.0, 5.0, 0.5), (), False),
        Case("linspace", lambda a: tf.linspace(a, 1.0, 7), (np.float32(0.25),), False),
        Case("fill", lambda: tf.fill([3, 2], 1.5), (), False),
        Case("eye", lambda: tf.eye(4), (), False),
        Case("meshgrid", lambda a, b: tf.meshgrid(a, b), (floats(3), floats(4))),
        Case("sequence_mask", lambda i: tf.sequence_mask(i, 5), (np.array([1, 3]),), False),
        Case("reverse_sequence", lambda a: tf.reverse_sequence(a, [2, 4, 1], 1, 0), (x,)),
        Case(
            "space_to_batch", lambda a: tf.space_to_batch(a, [2, 2], [[0, 0], [0, 0]]), (floats(1, 4, 4, 2),)
        ),
        Case("depth_to_space", lambda a: tf.nn.depth_to_space(a, 2), (floats(1, 2, 2, 8),)),
        Case("space_to_depth", lambda a: tf.nn.space_to_depth(a, 2), (floats(1, 4, 4, 2),)),
        Case("unique", lambda i: tf.unique(i)[0], (np.array([3, 1, 3, 2]),), False),
        Case("dynamic_partition", lambda a: tf.dynamic_partition(a, [0, 1, 0], 2), (x,)),
        Case("dynamic_stitch", lambda a: tf.dynamic_stitch([[0, 2], [1]], [a[:2], a[2:]]), (x,)),
        Case("searchsorted", lambda a: tf.searchsorted(tf.sort(a), a), (x,), False),
        Case("diag", tf.linalg.diag, (floats(4),)),
        Case("diag_part", tf.linalg.diag_part, (floats(4, 4),)),
        Case("band_part", lambda a: tf.linalg.band_part(a, 1, 0), (floats(4, 4),)),
        Case("set_diag", lambda a, d: tf.linalg.set_diag(a, d), (floats(4, 4), floats(4))),
        Case("embedding_lookup", lambda a: tf.nn.embedding_lookup(a, index), (x,)),
    ]


def _linear_algebra() -> list[Case]:
    spd = floats(4, 4)
    spd = (spd @ spd.T + 4 * np.eye(4)).astype(np.float32)
    return [
        Case("matmul", tf.matmul, (floats(5, 6), floats(6, 7))),
        Case(
            "matmul_transposed", lambda a, b: tf.matmul(a, b, transpose_b=True), (floats(5, 6), floats(7, 6))
        ),
        Case("matmul_batched", tf.matmul, (floats(2, 5, 6), floats(2, 6, 7))),
        Case("matmul_broadcast", tf.matmul, (floats(2, 5, 6), floats(6, 7))),
        Case("matmul_double", tf.matmul, (floats(5, 6).astype(np.float64), floats(6, 7).astype(np.float64))),
        Case("einsum", lambda a, b: tf.einsum("bij,bjk->bik", a, b), (floats(2, 3, 4), floats(2, 4, 5))),
        Case("einsum_dots", lambda a, b: tf.einsum("...ij,jk->...ik", a, b), (floats(2, 3, 4), floats(4, 5))),
        Case("tensordot", lambda a, b: tf.tensordot(a, b, 1), (floats(3, 4), floats(4, 5))),
        Case("linear_solve", tf.linalg.solve, (spd, floats(4, 2))),
        Case("cholesky", tf.linalg.cholesky, (spd,)),
        Case("inverse", tf.linalg.inv, (spd,)),
        Case("determinant", tf.linalg.det, (spd,)),
        Case("triangular_solve", tf.linalg.triangular_solve, (spd, floats(4, 2))),
        Case("trace", tf.linalg.trace, (spd,)),
        Case("cross", tf.linalg.cross, (floats(2, 3), floats(2, 3))),
        Case("eigh_values", lambda a: tf.linalg.eigvalsh(a), (spd,)),
        Case("singular_values", lambda a: tf.linalg.svd(a, compute_uv=False), (spd,)),
        Case("fft", lambda a: tf.abs(tf.signal.fft(tf.cast(a, tf.complex64))), (floats(8),)),
        Case("rfft", lambda a: tf.abs(tf.signal.rfft(a)), (floats(8),)),
        Case("fft2d", lambda a: tf.abs(tf.signal.fft2d(tf.cast(a, tf.complex64))), (floats(4, 4),)),
        Case("complex_parts", lambda a: tf.math.imag(tf.math.conj(tf.complex(a, a))), (floats(4),)),
    ]


def _images() -> list[Case]:
    image, filters = floats(2, 8, 8, 3), floats(3, 3, 3, 4)
    first = np.ascontiguousarray(image.transpose(0, 3, 1, 2))
    pool = {"ksize": 2, "strides": 2, "padding": "SAME"}
    return [
        Case("conv1d", lambda x, f: tf.nn.conv1d(x, f, 1, "SAME"), (floats(2, 8, 3), floats(3, 3, 4))),
        Case("conv2d", lambda x, f: tf.nn.conv2d(x, f, 2, "SAME"), (image, filters)),
        Case("conv2d_dilated", lambda x, f: tf.nn.conv2d(x, f, 1, "VALID", dilations=2), (image, filters)),
        Case(
            "conv2d_transpose",
            lambda x, f: tf.nn.conv2d_transpose(x, f, [2, 16, 16, 3], 2),
            (floats(2, 8, 8, 4), filters),
        ),
        Case(
            "conv3d",
            lambda x, f: tf.nn.conv3d(x, f, [1] * 5, "SAME"),
            (floats(1, 4, 4, 4, 2), floats(2, 2, 2, 2, 3)),
        ),
        Case(
            "depthwise_conv2d",
            lambda x, f: tf.nn.depthwise_conv2d(x, f, [1] * 4, "SAME"),
            (image, floats(3, 3, 3, 2)),
        ),
        Case("max_pool2d", lambda x: tf.nn.max_pool2d(x, **pool), (image,)),
        Case("avg_pool2d", lambda x: tf.nn.avg_pool2d(x, **pool), (image,)),
        Case("max_pool3d", lambda x: tf.nn.max_pool3d(x, 2, 2, "VALID"), (floats(1, 4, 4, 4, 2),)),
        Case("avg_pool3d", lambda x: tf.nn.avg_pool3d(x, 2, 2, "VALID"), (floats(1, 4, 4, 4, 2),)),
        Case("max_pool_with_argmax", lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")[0], (image,)),
        Case("bias_add", tf.nn.bias_add, (image, floats(3))),
        Case(
            "fused_batch_norm",
            lambda x, s, b: tf.compat.v1.nn.fused_batch_norm(x, s, b)[0],
            (image, positive(3), floats(3)),
        ),
        Case("local_response_normalization", tf.nn.local_response_normalization, (image,)),
        Case("resize_bilinear", lambda x: tf.image.resize(x, [5, 5]), (image,)),
        Case("resize_nearest", lambda x: tf.image.resize(x, [5, 5], "nearest"), (image,)),
        Case(
            "crop_and_resize",
            lambda x: tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.8]], [1], [4, 4]),
            (image,),
        ),
        Case("adjust_contrast", lambda x: tf.image.adjust_contrast(x, 2.0), (positive(2, 8, 8, 3),), False),
        Case("rgb_to_hsv", tf.image.rgb_to_hsv, (positive(2, 8, 8, 3),), False),
        Case("flip_left_right", tf.image.flip_left_right, (image,)),
        Case(
            "extract_patches",
            lambda x: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1] * 4, "SAME"),
            (image,),
        ),
        Case(
            "dilation2d",
            lambda x, f: tf.nn.dilation2d(x, f, [1] * 4, "SAME", "NHWC", [1] * 4),
            (image, floats(3, 3, 3)),
        ),
        Case("conv2d_first", _last_on_cpu("conv2d"), (first, filters)),
        Case("max_pool_first", _last_on_cpu("max_pool"), (first,)),
        Case("avg_pool_first", _last_on_cpu("avg_pool"), (first,)),
        Case("depth_to_space_first", _last_on_cpu("depth_to_space"), (floats(1, 8, 2, 2),)),
    ]


def _last_on_cpu(kind: str) -> Callable[..., Any]:
    """A channels-first op; on the CPU, which may lack it, the channels-last one, transposed."""

    def call(x: Any, filters: Any = None) -> Any:
        on_cpu = tf.constant(0.0).device.endswith("CPU:0")
        layout = "NHWC" if on_cpu else "NCHW"
        source = tf.transpose(x, [0, 2, 3, 1]) if on_cpu else x
        strides = {"ksize": 2, "strides": 2, "padding": "SAME", "data_format": layout}
        if kind == "conv2d":
            result = tf.nn.conv2d(source, filters, 2, "SAME", data_format=layout)
        elif kind == "depth_to_space":
            result = tf.nn.depth_to_space(source, 2, data_format=layout)
        else:
            result = getattr(tf.nn, f"{kind}2d")(source, **strides)
        return tf.transpose(result, [0, 3, 1, 2]) if on_cpu else result

    return call


def _losses() -> list[Case]:
    logits, labels = floats(4, 5), np.array([1, 0, 4, 2])
    share = tf.nn.softmax(floats(4, 5)).numpy()
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits
    dense = tf.nn.softmax_cross_entropy_with_logits
    return [
        Case("softmax_cross_entropy", lambda x: dense(share, x), (logits,)),
        Case("sparse_softmax_cross_entropy", lambda x: sparse(labels, x), (logits,)),
        Case("sigmoid_cross_entropy", lambda x: tf.nn.sigmoid_cross_entropy_with_logits(share, x), (logits,)),
        Case("l2_loss", tf.nn.l2_loss, (logits,)),
        Case("ctc_loss", _ctc, (floats(8, 2, 5),)),
        Case("stateless_uniform", lambda: tf.random.stateless_uniform([50], [1, 2]), (), False),
        Case("stateless_normal", lambda: tf.random.stateless_normal([50], [1, 2]), (), False),
        Case("dropout", lambda x: tf.nn.experimental.stateless_dropout(x, 0.5, [1, 2]), (floats(40),)),
        Case("check_numerics", lambda x: tf.debugging.check_numerics(x, "bad"), (logits,)),
        Case(
            "while_loop",
            lambda x: tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), (0, x))[1],
            (logits,),
        ),
        Case("cond", lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x * 3.0), (logits,)),
        Case("map_fn", lambda x: tf.map_fn(lambda row: row * row, x), (logits,)),
        Case("scan", lambda x: tf.scan(lambda a, b: a + b, x), (logits,)),
        Case("tensor_array", _tensor_array, (logits,)),
    ]


def _ctc(logits: Any) -> Any:
    labels = tf.sparse.from_dense(tf.constant([[1, 2, 2], [3, 1, 0]], tf.int32))
    return tf.nn.ctc_loss(labels, logits, None, [8, 7], blank_index=4)


def _tensor_array(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=2)
    return array.write(0, x).write(1, x * 2.0).stack()


CASES = [*_unary(), *_binary(), *_reductions(), *_shapes(), *_linear_algebra(), *_images(), *_losses()]
