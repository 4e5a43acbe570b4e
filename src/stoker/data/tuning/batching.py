"""A traced function of one element, made into a function of a whole batch, if it can be proven to do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from stoker.data.tuning import effects
from stoker.data.tuning.batching_rules import EXACT, RULES
from stoker.data.tuning.emitting import Emitter, Value
from stoker.data.tuning.value_rules import exact_cast
from stoker.tf_internals import datasets
from stoker.tf_internals.pipelines import from_tensors, nest


def batched(wrapper: Any) -> tuple[Callable[..., Any], list[bool]]:
    """The function of a map stage for batches of its elements.

    Returns:
        the function, and a list that is filled as it is traced: whether every operation is exact.
    """
    concrete = wrapper.function
    exact: list[bool] = []

    def of_batch(*args: Any) -> Any:
        rows = nest.flatten(args)
        graph = tf.compat.v1.get_default_graph()
        specs = concrete.graph.inputs
        given = [Value(row, True, spec.shape) for row, spec in zip(rows, specs, strict=False)]
        captured = concrete.captured_inputs
        given += [Value(graph.capture(one), False, one.shape) for one in captured]
        emitter = Emitter(RULES, tf.shape(rows[0])[0])
        outputs = emitter.run(concrete.graph, given)
        exact.append(emitter.exact)
        flat = [emitter.as_row(value) for value in outputs]
        return from_tensors(_batch_of(wrapper.output_structure), flat)

    return named_like(datasets.python_function(wrapper), of_batch), exact


def in_parallel(wrapper: Any) -> Callable[..., Any]:
    """The function of a map stage for batches, by TensorFlow's own conversion, which must not fall back on a loop."""
    concrete = wrapper.function

    def of_element(flat: Any) -> Any:
        return concrete(*flat)

    def of_batch(*args: Any) -> Any:
        rows = nest.flatten(args)
        flat = tf.vectorized_map(of_element, rows, fallback_to_while_loop=False)
        outputs = nest.flatten(flat) if not isinstance(flat, list) else flat
        return from_tensors(_batch_of(wrapper.output_structure), outputs)

    return named_like(datasets.python_function(wrapper), of_batch)


def exact_operations(wrapper: Any) -> bool:
    """Whether a function is made only of operations that give the same bits in whatever shape they are computed."""
    return all(
        exact_cast(tf.as_dtype(node.attr["SrcT"].type), tf.as_dtype(node.attr["DstT"].type))
        if node.op == "Cast"
        else node.op in EXACT
        for node in effects.nodes(wrapper.function.graph)
    )


def named_like(original: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that reports show as the original one, and that TensorFlow takes as it is written."""
    kept: Callable[..., Any] = tf.autograph.experimental.do_not_convert(function)
    kept.__wrapped__ = original  # type: ignore[attr-defined]
    return kept


def _batch_of(specs: Any) -> Any:
    return nest.map_structure(datasets.batch_spec, specs)
