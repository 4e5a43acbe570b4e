"""Stable names for a model's inputs and outputs: names that someone chose, or plain ones that do not count layers.

Keras numbers the layers of a process: the third model's input is `input_layer_2` or `keras_tensor_16`. In the next
process, such a name would be different.
"""

from __future__ import annotations

import re

from stoker.tf_internals.keras_layers import is_numbered_name, maker_of
from stoker.tf_internals.types import Nest, Tensor
from stoker.train.execution.batch_function import flatten

_COUNTED_TENSOR = re.compile(r"keras_tensor(_\d+)?")


def leaves_of(structure: Nest) -> list[Tensor]:
    """List the tensors of a structure in the order of `flatten`."""
    leaves: list[Tensor] = []
    flatten(structure, leaves)
    return leaves


def choose_names(tensors: list[Tensor], plain: str) -> list[str]:
    """Choose a name for each Keras tensor: its layer's name if somebody chose it, else `plain`, numbered if needed."""
    names = [_given_name(tensor) for tensor in tensors]
    if len(tensors) == 1:
        return [names[0] or plain]
    found: list[str] = []
    for number, name in enumerate(names, 1):
        free = name if name and name not in found else f"{plain}_{number}"
        found.append(free)
    return found


def number_names(count: int, plain: str) -> list[str]:
    """Return numbered names, for tensors that have none."""
    return [plain] if count == 1 else [f"{plain}_{number}" for number in range(1, count + 1)]


def _given_name(tensor: Tensor) -> str | None:
    layer = maker_of(tensor)
    name = str(layer.name)
    if is_numbered_name(name, layer) or _COUNTED_TENSOR.fullmatch(name):
        return None
    return name
