"""LiteRT and ONNX files with operations or weights that are not their own are refused before their engine sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.serve.bundle import BundleError
from stoker.serve.safety.converted_files import check_litert, check_onnx
from tests.serve.bundles import ENGINES


def test_litert_operations_of_others_are_refused(tmp_path: Path) -> None:
    @tf.function(input_signature=[tf.TensorSpec([1, 4], tf.float32)])
    def odd(x: Any) -> Any:
        return tf.raw_ops.Igamma(a=x, x=x)

    converter = tf.lite.TFLiteConverter.from_concrete_functions([odd.get_concrete_function()])
    converter.allow_custom_ops = True
    file = tmp_path / "model.tflite"
    file.write_bytes(converter.convert())
    with pytest.raises(BundleError, match="has the operation Igamma, which is not one of LiteRT's own"):
        check_litert(file, ())
    check_litert(file, ["Igamma"])
    # What the converter calls an operation that is left to TensorFlow.
    file.write_bytes(file.read_bytes().replace(b"\x06\0\0\0Igamma", b"\x06\0\0\0FlexOp"))
    with pytest.raises(BundleError, match="has the operation FlexOp"):
        check_litert(file, ())
    check_litert(file, ["Op"])


@pytest.mark.skipif("onnx" not in ENGINES, reason="needs stoker[onnx]")
def test_onnx_weights_in_other_files_are_refused(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.ones((4,), np.float32), "weights")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "weights"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [weights],
    )
    model = helper.make_model(graph)
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    check_onnx(file, ())
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "/etc/passwd")
    model.graph.initializer[0].ClearField("raw_data")
    file.write_bytes(model.SerializeToString())
    with pytest.raises(BundleError, match="takes the tensor 'weights' from another file"):
        check_onnx(file, ())
    # Also where a tensor is an attribute of a node in a branch.
    inner = helper.make_node("Constant", [], ["y"], value=model.graph.initializer[0])
    branch = helper.make_graph([inner], "branch", [], graph.output)
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    nested = helper.make_model(helper.make_graph([choice], "g", graph.input, graph.output))
    file.write_bytes(nested.SerializeToString())
    with pytest.raises(BundleError, match="from another file"):
        check_onnx(file, ())


@pytest.mark.skipif("onnx" not in ENGINES, reason="needs stoker[onnx]")
def test_onnx_operations_of_others_are_refused(tmp_path: Path) -> None:
    from onnx import helper

    node = helper.make_node("EPContext", [], ["y"], domain="com.microsoft", ep_cache_context="/etc/passwd")
    file = tmp_path / "model.onnx"
    file.write_bytes(helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString())
    with pytest.raises(BundleError, match=r"has the operation EPContext of the domain 'com\.microsoft'"):
        check_onnx(file, ())
    check_onnx(file, ["EPContext"])


@pytest.mark.skipif(not ENGINES, reason="needs an engine beside TensorFlow")
def test_exported_files_are_taken_and_cut_ones_are_one_line(
    pets: tuple[keras.Model, Path], tmp_path: Path
) -> None:
    for engine, check in (("litert", check_litert), ("onnx", check_onnx)):
        if engine not in ENGINES:
            continue
        name = {"litert": "model.tflite", "onnx": "model.onnx"}[engine]
        check(pets[1] / name, ())
        whole = (pets[1] / name).read_bytes()
        file = tmp_path / name
        for length in range(0, len(whole), max(1, len(whole) // 200)):
            file.write_bytes(whole[:length])
            try:
                check(file, ())
            except BundleError as refused:
                line = str(refused)
                assert "\n" not in line
