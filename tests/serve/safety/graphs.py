"""SavedModels with nodes put into them by hand: what TensorFlow's own writer would never write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

# Operations that read, write, connect or call Python, with what their nodes need to be loaded.
TEXT = tf.string.as_datatype_enum


def edit(place: Path, change: Callable[[Any], None]) -> Path:
    """Change the graph of a SavedModel in its file."""
    file = place / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    change(saved.meta_graphs[0])
    file.write_bytes(saved.SerializeToString())
    return place


def served_function(meta: Any) -> Any:
    """The function that answers: the one that the signature's node calls."""
    output = next(iter(meta.signature_def["serving_default"].outputs.values())).name.partition(":")[0]
    node = next(one for one in meta.graph_def.node if one.name == output)
    return next(
        one for one in meta.graph_def.library.function if one.signature.name == node.attr["f"].func.name
    )


def text_node(nodes: Any, name: str, value: str) -> str:
    """Add a constant text."""
    node = nodes.add(name=name, op="Const")
    node.attr["dtype"].type = TEXT
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
    return name


def write_file(path: Path) -> Callable[[Any], None]:
    """A change: every answer also writes a file."""

    def change(meta: Any) -> None:
        function = served_function(meta)
        name = text_node(function.node_def, "evil/name", str(path))
        text = text_node(function.node_def, "evil/text", "written by a model")
        function.node_def.add(
            name="evil/WriteFile", op="WriteFile", input=[f"{name}:output:0", f"{text}:output:0"]
        )
        last = next(one for one in function.node_def if one.op == "Identity")
        last.input.append("^evil/WriteFile")

    return change
