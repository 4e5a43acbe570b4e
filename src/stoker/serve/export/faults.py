"""Find the layer that raises, or that answers the same rows differently each time."""

from __future__ import annotations

import re
import threading
from types import TracebackType

import keras
import numpy as np
import tensorflow as tf

from stoker.serve.proof import is_identical
from stoker.serve.signature import Array
from stoker.tf_internals.types import Layer, Nest

_BOLD = re.compile(r"\x1b\[\d*m")
_one_at_a_time = threading.Lock()


def blame_layer(error: BaseException) -> str:
    """Return the innermost layer in whose call the error was raised, and the error, in one line."""
    layer = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        own = trace.tb_frame.f_locals.get("self")
        if isinstance(own, keras.layers.Layer) and trace.tb_frame.f_code.co_name != "predict_step":
            layer = own
        trace = trace.tb_next
    # Keras puts the layer's message on a line of its own, in bold.
    lines = [_BOLD.sub("", line).strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith("Exception encountered when calling")]
    reason = f"{type(error).__name__}: {said[0] if said else 'no reason given'}"
    return reason if layer is None else f"layer {layer.name!r} ({type(layer).__name__}): {reason}"


def find_restless_layer(model: keras.Model, inputs: Nest) -> str | None:
    """Return the first layer that answers the same input differently each time, called as `predict` calls it."""
    first, second = _record_layers(model, inputs), _record_layers(model, inputs)
    for (layer, one), (_, other) in zip(first, second, strict=False):
        if not all(map(is_identical, one, other)):
            return f"layer {layer.name!r} ({type(layer).__name__})"
    return None


def _record_layers(model: keras.Model, inputs: Nest) -> list[tuple[Layer, list[Array]]]:
    """Record what each layer returned, inner layers first."""
    found: list[tuple[Layer, list[Array]]] = []
    plain = keras.layers.Layer.__call__

    def call(layer: Layer, *args: object, **kwargs: object) -> Nest:
        outputs = plain(layer, *args, **kwargs)
        found.append((layer, [np.asarray(one) for one in tf.nest.flatten(outputs) if tf.is_tensor(one)]))
        return outputs

    with _one_at_a_time:
        keras.layers.Layer.__call__ = call
        try:
            model.predict_step((inputs,))
        finally:
            keras.layers.Layer.__call__ = plain
    return found
