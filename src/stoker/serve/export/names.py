"""Stable names for what a model takes and gives: those someone chose, or plain ones that do not count layers.

Keras numbers the layers of a process: the third model's input is `input_layer_2` or `keras_tensor_16`. Such a name
would be another one in the next process.
"""

from __future__ import annotations

import re

from stoker.tf_internals.keras_layers import is_numbered_name, maker_of
from stoker.tf_internals.types import Nest, Tensor
from stoker.train.execution.batch_function import flatten

_COUNTED_TENSOR = re.compile(r"keras_tensor(_\d+)?")


def leaves_of(structure: Nest) -> list[Tensor]:
    """The tensors of a structure in the order of `flatten`."""
    leaves: list[Tensor] = []
    flatten(structure, leaves)
    return leaves


def choose_names(tensors: list[Tensor], plain: str) -> list[str]:
    """A name for each Keras tensor: its layer's if somebody gave it one, else `plain`, numbered if need be."""
    names = [_given_name(tensor) for tensor in tensors]
    if len(tensors) == 1:
        return [names[0] or plain]
    found: list[str] = []
    for number, name in enumerate(names, 1):
        free = name if name and name not in found else f"{plain}_{number}"
        found.append(free)
    return found


def number_names(count: int, plain: str) -> list[str]:
    """Numbered names, for tensors that have none."""
    return [plain] if count == 1 else [f"{plain}_{number}" for number in range(1, count + 1)]


def _given_name(tensor: Tensor) -> str | None:
    layer = maker_of(tensor)
    name = str(layer.name)
    if is_numbered_name(name, layer) or _COUNTED_TENSOR.fullmatch(name):
        return None
    return name
