"""Turn a traced function of one element into a function of a whole batch, if it provably does the same."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from stoker.data.order import skip_autograph
from stoker.data.tuning import effects
from stoker.data.tuning.batching_rules import EXACT, RULES
from stoker.data.tuning.emitting import Emitter, GraphValue
from stoker.data.tuning.value_rules import is_exact_cast
from stoker.tf_internals import datasets
from stoker.tf_internals.pipelines import from_tensors, nest
from stoker.tf_internals.types import Nest, StageFunction, Tensor


def rewrite_for_batches(wrapper: StageFunction) -> tuple[Callable[..., Nest], list[bool]]:
    """Rewrite the function of a map stage for batches of its elements.

    Returns:
        The function, and a list to which each trace appends whether every operation is exact.
    """
    concrete = wrapper.function
    exact: list[bool] = []

    def map_batch(*args: Nest) -> Nest:
        rows = nest.flatten(args)
        graph = tf.compat.v1.get_default_graph()
        specs = concrete.graph.inputs
        given = [GraphValue(row, True, spec.shape) for row, spec in zip(rows, specs, strict=False)]
        captured = concrete.captured_inputs
        given += [GraphValue(graph.capture(one), False, one.shape) for one in captured]
        emitter = Emitter(RULES, tf.shape(rows[0])[0])
        outputs = emitter.run(concrete.graph, given)
        exact.append(emitter.exact)
        flat = [emitter.as_row(value) for value in outputs]
        return from_tensors(_batch_of(wrapper.output_structure), flat)

    return name_like(datasets.python_function(wrapper), map_batch), exact


def convert_for_batches(wrapper: StageFunction) -> Callable[..., Nest]:
    """Convert the function of a map stage for batches as TensorFlow itself does, but without falling back to a loop."""
    concrete = wrapper.function

    def map_element(flat: list[Tensor]) -> Nest:
        return concrete(*flat)

    def map_batch(*args: Nest) -> Nest:
        rows = nest.flatten(args)
        flat = tf.vectorized_map(map_element, rows, fallback_to_while_loop=False)
        outputs = nest.flatten(flat) if not isinstance(flat, list) else flat
        return from_tensors(_batch_of(wrapper.output_structure), outputs)

    return name_like(datasets.python_function(wrapper), map_batch)


def has_exact_operations(wrapper: StageFunction) -> bool:
    """Return whether all operations of a function give the same bits for every shape."""
    return all(
        is_exact_cast(tf.as_dtype(node.attr["SrcT"].type), tf.as_dtype(node.attr["DstT"].type))
        if node.op == "Cast"
        else node.op in EXACT
        for node in effects.nodes(wrapper.function.graph)
    )


def name_like(original: Callable[..., Nest], function: Callable[..., Nest]) -> Callable[..., Nest]:
    """Return the function under the name of another in reports, and without AutoGraph's conversion."""
    kept = skip_autograph(function)
    # Types do not know this attribute.
    vars(kept)["__wrapped__"] = original
    return kept


def _batch_of(specs: Nest) -> Nest:
    return nest.map_structure(datasets.batch_spec, specs)
