"""A SavedModel with an operation that leads out of it is refused before anything of it is loaded or run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from stoker.serve.bundle import BundleError
from stoker.serve.safety.saved_model import check_saved_model
from tests.serve.safety.graphs import TEXT, edit, served_function, text_node


class Cities(tf.Module):
    """A table from an asset, a variable, and a loop."""

    def __init__(self, vocabulary: Path) -> None:
        line = tf.lookup.TextFileIndex
        initializer = tf.lookup.TextFileInitializer(
            str(vocabulary), tf.string, line.WHOLE_LINE, tf.int64, line.LINE_NUMBER
        )
        self.table = tf.lookup.StaticHashTable(initializer, -1)
        self.scale = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="city")])
    def serve(self, city: Any) -> dict[str, Any]:
        found = tf.cast(self.table.lookup(city), tf.float32) * self.scale
        for _ in tf.range(3):
            found += tf.random.stateless_uniform([], [1, 2])
        return {"found": found}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    vocabulary = tmp_path / "cities.txt"
    vocabulary.write_text("rome\noslo\n")
    module = Cities(vocabulary)
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures={"serving_default": module.serve})
    vocabulary.unlink()  # the SavedModel has its own
    return tmp_path / "saved"


def test_tables_from_assets_variables_and_loops_are_taken(saved: Path) -> None:
    check_saved_model(saved, ())
    loaded = tf.saved_model.load(str(saved))
    answer = loaded.signatures["serving_default"](city=tf.constant(["oslo", "rome"]))["found"].numpy()
    assert answer[0] - answer[1] == 2.0


def in_function(op: str, *texts: str, **kinds: int) -> Callable[[Any], None]:
    def change(meta: Any) -> None:
        nodes = served_function(meta).node_def
        given = [f"{text_node(nodes, f'evil/{number}', text)}:output:0" for number, text in enumerate(texts)]
        node = nodes.add(name=f"evil/{op}", op=op, input=given)
        for name, kind in kinds.items():
            node.attr[name].type = kind

    return change


def in_main_graph(op: str, *texts: str) -> Callable[[Any], None]:
    def change(meta: Any) -> None:
        nodes = meta.graph_def.node
        nodes.add(
            name=f"evil/{op}", op=op, input=[text_node(nodes, f"evil/{n}", t) for n, t in enumerate(texts)]
        )

    return change


def print_to_file(meta: Any) -> None:
    node = served_function(meta).node_def.add(name="evil/print", op="PrintV2", input=["city"])
    node.attr["output_stream"].s = b"file:///tmp/somewhere"


HOSTILE: dict[str, tuple[str, Callable[[Any], None]]] = {
    "write": ("WriteFile", in_function("WriteFile", "/tmp/a", "text")),
    "write in the main graph": ("WriteFile", in_main_graph("WriteFile", "/tmp/a", "text")),
    "read": ("ReadFile", in_function("ReadFile", "/etc/passwd")),
    "list": ("MatchingFiles", in_function("MatchingFiles", "/*")),
    "python": ("PyFunc", in_function("PyFunc")),
    "stateless python": ("PyFuncStateless", in_function("PyFuncStateless")),
    "eager python": ("EagerPyFunc", in_function("EagerPyFunc")),
    "merge": ("MergeV2Checkpoints", in_function("MergeV2Checkpoints", "a", "b")),
    "save": ("SaveV2", in_function("SaveV2", "a", "b", "c")),
    "restore": ("RestoreV2", in_function("RestoreV2", "a", "b", "c")),
    "restore in the main graph": ("RestoreV2", in_main_graph("RestoreV2", "a", "b", "c")),
    "debug": ("DebugIdentity", in_function("DebugIdentity", "a", T=TEXT)),
    "copy": ("Copy", in_function("Copy", "a", T=TEXT)),
    "print to a file": ("PrintV2", print_to_file),
    "mapped file": ("ImmutableConst", in_function("ImmutableConst")),
    "serialized graph": ("DatasetFromGraph", in_function("DatasetFromGraph", "graph")),
    "data service": ("DataServiceDatasetV4", in_function("DataServiceDatasetV4")),
    "rpc": ("RpcCall", in_function("RpcCall")),
    "protobuf from a file": ("DecodeProtoV2", in_function("DecodeProtoV2", "a")),
    "custom call": ("XlaCustomCallV2", in_function("XlaCustomCallV2")),
    "module": ("XlaCallModule", in_function("XlaCallModule")),
    "abort": ("Abort", in_function("Abort")),
    "vocabulary": ("FixedUnigramCandidateSampler", in_function("FixedUnigramCandidateSampler", "a")),
    "file system": ("FileSystemSetConfiguration", in_function("FileSystemSetConfiguration", "a", "b", "c")),
    "unknown": ("NoSuchOperation", in_function("NoSuchOperation")),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_operations_that_lead_out_are_refused_by_name(saved: Path, case: str) -> None:
    op, change = HOSTILE[case]
    edit(saved, change)
    with pytest.raises(
        BundleError, match=rf"has the operation {op} \(node 'evil/.*--allow-ops {op}"
    ) as refused:
        check_saved_model(saved, ())
    assert "\n" not in str(refused.value)
    if not case.startswith("unknown"):
        check_saved_model(saved, [op])


def _table_from(path: str) -> Callable[[Any], None]:
    def change(meta: Any) -> None:
        for function in meta.graph_def.library.function:
            for node in function.node_def:
                if node.op == "InitializeTableFromTextFileV2":
                    node.input[1] = f"{text_node(function.node_def, 'evil/path', path)}:output:0"

    return change


def _asset_constant(meta: Any) -> None:
    """The placeholder of the asset becomes a text of the graph's own."""
    name = meta.asset_file_def[0].tensor_info.name.partition(":")[0]
    node = next(one for one in meta.graph_def.node if one.name == name)
    meta.graph_def.node.remove(node)
    text_node(meta.graph_def.node, name, "/etc/passwd")


def _variable_assigned(meta: Any) -> None:
    """The variable that holds the asset's path gets another value, too."""
    handle = next(one for one in meta.graph_def.node if one.op == "AssignVariableOp").input[0]
    text = text_node(meta.graph_def.node, "evil/path", "/etc/passwd")
    node = meta.graph_def.node.add(name="evil/assign", op="AssignVariableOp", input=[handle, text])
    node.attr["dtype"].type = TEXT


def _bound_to_a_constant(meta: Any) -> None:
    """The eager loader is given something else than the asset."""
    objects = meta.object_graph_def
    for name, function in objects.concrete_functions.items():
        if "initializer" in name:
            function.bound_inputs[0] = 0


@pytest.mark.parametrize(
    "change", [_table_from("/etc/passwd"), _asset_constant, _variable_assigned, _bound_to_a_constant]
)
def test_a_table_from_a_file_that_is_no_asset_is_refused(saved: Path, change: Callable[[Any], None]) -> None:
    edit(saved, change)
    with pytest.raises(BundleError, match="has the operation InitializeTableFromTextFileV2"):
        check_saved_model(saved, ())


@pytest.mark.parametrize("name", ["/etc/passwd", "../../secret", "a/../../b", ""])
def test_an_asset_outside_is_refused(saved: Path, name: str) -> None:
    def change(meta: Any) -> None:
        meta.asset_file_def[0].filename = name

    edit(saved, change)
    with pytest.raises(BundleError, match="outside of the bundle"):
        check_saved_model(saved, ())


def _answer_saves(meta: Any) -> None:
    """The answer waits for the graph's own saving function."""
    answer = next(iter(meta.signature_def["serving_default"].outputs.values())).name.partition(":")[0]
    save = meta.saver_def.save_tensor_name.partition(":")[0]
    next(one for one in meta.graph_def.node if one.name == answer).input.append(f"^{save}")


def _loading_saves(meta: Any) -> None:
    meta.saver_def.restore_op_name = meta.saver_def.save_tensor_name.partition(":")[0]


def _restores_from_elsewhere(meta: Any) -> None:
    for function in meta.graph_def.library.function:
        for node in function.node_def:
            if node.op == "RestoreV2":
                node.input[0] = f"{text_node(function.node_def, 'evil/prefix', '/models/other')}:output:0"


def _called_twice(meta: Any) -> None:
    name = next(
        one.signature.name
        for one in meta.graph_def.library.function
        if any(node.op == "SaveV2" for node in one.node_def)
    )
    node = served_function(meta).node_def.add(name="evil/call", op="StatefulPartitionedCall")
    node.attr["f"].func.name = name


def _loaded_as_an_object(meta: Any) -> None:
    name = next(
        one.signature.name
        for one in meta.graph_def.library.function
        if any(node.op == "RestoreV2" for node in one.node_def)
    )
    meta.object_graph_def.concrete_functions[name].canonicalized_input_signature.SetInParent()


@pytest.mark.parametrize(
    "change",
    [_answer_saves, _loading_saves, _restores_from_elsewhere, _called_twice, _loaded_as_an_object],
)
def test_saving_and_restoring_stay_with_the_loader(saved: Path, change: Callable[[Any], None]) -> None:
    edit(saved, change)
    with pytest.raises(BundleError, match=r"has the operation (SaveV2|RestoreV2|MergeV2Checkpoints) "):
        check_saved_model(saved, ())


def test_what_is_no_graph_is_one_line(saved: Path) -> None:
    (saved / "saved_model.pb").write_bytes(b"\xff" * 50)
    with pytest.raises(BundleError, match="cannot be read") as refused:
        check_saved_model(saved, ())
    assert "\n" not in str(refused.value)
    (saved / "saved_model.pb").unlink()
    with pytest.raises(BundleError, match="cannot be read"):
        check_saved_model(saved, ())
