"""Keras layers, models and losses: their inner layers, their variables, and the calls they were traced through."""

from __future__ import annotations

import re
from typing import Any

from stoker.tf_internals import Place
from stoker.tf_internals.types import Layer, LayerCall, Loss, Model, Nest, SeedGenerator, Tensor, Variable


def layers_of(model: Model) -> list[Layer]:
    """Return a model and all layers in it, however deep; `model.layers` has only the outermost."""
    return list(model._flatten_layers())


def inner_layers(layer: Layer) -> list[Layer]:
    """Return the layers directly in a layer or model, in the order they were put there."""
    return list(layer._layers)


def own_variables(layer: Layer) -> list[Variable]:
    """Return a layer's own variables, without those of its sublayers; the trainable ones come first."""
    return [*layer._trainable_variables, *layer._non_trainable_variables]


def own_state(layer: Layer) -> list[Variable]:
    """Return the variables that a layer itself made as not trainable, so without the weights of a frozen layer."""
    return list(layer._non_trainable_variables)


def seed_generators(layer: Layer) -> list[SeedGenerator]:
    """Return the seed generators of a layer itself, without those of its sublayers."""
    return list(layer._seed_generators)


def global_seed_generator() -> SeedGenerator:
    """Return the generator behind `keras.random` calls without a seed. The first call makes it, with a random seed."""
    from keras.src.random import seed_generator

    return seed_generator.global_seed_generator()


def calls_of(layer: Layer) -> list[LayerCall]:
    """Return each use of a layer in a functional model.

    A use has `parent_nodes`: the uses whose `operation` gave its inputs.
    """
    return list(getattr(layer, "_inbound_nodes", ()))


def maker_of(tensor: Tensor) -> Layer:
    """Return the layer or operation that made a Keras tensor; None unless the tensor belongs to a functional model."""
    history = getattr(tensor, "_keras_history", None)
    return None if history is None else history.operation


def input_structure(model: Model) -> Nest:
    """Return the Keras tensors of a model's inputs, in the structure in which it is called; None if unknown."""
    import keras

    if isinstance(model, keras.Sequential):
        return model.inputs[0] if model.built and model._functional is not None else None
    return getattr(model, "_inputs_struct", None)


def output_structure(model: Model) -> Nest:
    """Return the Keras tensors of a functional model's outputs, in the structure that it returns; None if unknown."""
    return getattr(model, "_outputs_struct", None)


def split_texts(vectorization: Layer, texts: Tensor) -> Tensor:
    """Split texts into the words that a `TextVectorization` finds, as a ragged tensor, before it looks them up."""
    return vectorization._preprocess(texts)


def mask_of(tensor: Tensor) -> Tensor:
    """Return the mask attached to a tensor; None if it has none."""
    from keras.src.backend.common import masking

    return masking.get_keras_mask(tensor)


def set_mask(tensor: Tensor, mask: Tensor) -> None:
    """Attach a mask to a tensor."""
    from keras.src.backend.common import masking

    masking.set_keras_mask(tensor, mask)


def is_numbered_name(name: str, layer: Layer) -> bool:
    """Return whether this is a name that Keras makes up for such a layer, with a number that counts earlier ones."""
    from keras.src.utils import naming

    plain = re.escape(naming.to_snake_case(type(layer).__name__))
    return re.fullmatch(plain + r"(_\d+)?", name) is not None


def takes_logits(loss: Loss) -> bool | None:
    """Return whether a loss was made with `from_logits=True`; None if the loss does not say."""
    if not hasattr(loss, "from_logits") and not hasattr(loss, "_fn_kwargs"):
        return None
    return bool(getattr(loss, "_fn_kwargs", {}).get("from_logits", False))


def losses_module() -> Any:
    """Return the module in which losses look up `scale_loss_for_distribution` and `unscale_loss_for_distribution`.

    Both functions take one value.
    """
    from keras.src.losses import loss

    return loss


def layer_creation() -> Place:
    """Return the method that every layer and model calls once when it is made: `(layer)`.

    Wrapping it keeps signatures.
    """
    import keras

    return keras.Layer, "_initialize_tracker"


def tensorflow_variables(variable: Variable) -> list[Variable]:
    """Return a Keras variable's TensorFlow variables: one, or one per device of a strategy; none if not built."""
    own = variable._value
    return [] if own is None else list(getattr(own, "values", None) or [own])


def scope_entry() -> Place:
    """Return the method with which Keras opens a name scope: `(scope)`.

    The scope's `caller` is the layer, the optimizer or None.
    """
    from keras.src.backend.tensorflow import core

    return core.name_scope, "__enter__"
