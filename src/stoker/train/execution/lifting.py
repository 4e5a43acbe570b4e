"""Variables that a step makes while it is traced, made at once and outside of its graph.

TensorFlow's own way is to trace such a step a second time, to be sure that it makes none then. A first step makes
many (the optimizer's slots, metrics, a model that builds itself), so every first call would be traced twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from stoker.tf_internals.graphs import make_variable
from stoker.tf_internals.types import Nest, Variable

_OPTIONS = frozenset(
    {
        "aggregation",
        "caching_device",
        "constraint",
        "dtype",
        "initial_value",
        "name",
        "shape",
        "synchronization",
        "trainable",
        "validate_shape",
    }
)


def lifting(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step, for tracing."""

    def run(*args: Nest) -> Nest:
        with tf.variable_creator_scope(_made_outside):
            return step(*args)

    return run


def _made_outside(next_creator: Callable[..., Variable], **options: object) -> Variable:
    given = {name: value for name, value in options.items() if value is not None and name in _OPTIONS}
    # A strategy has its own way of making variables, and a value of the graph exists only there.
    if tf.distribute.has_strategy() or isinstance(given.get("initial_value"), tf.Tensor):
        return next_creator(**options)
    try:
        with tf.init_scope():
            if not tf.executing_eagerly():
                return next_creator(**options)
            return make_variable(**given)
    except TypeError:
        # An initializer that uses a tensor of the graph: TensorFlow raises this for one that is out of its scope.
        return next_creator(**options)
