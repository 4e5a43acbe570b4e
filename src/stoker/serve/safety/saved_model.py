"""Check the operations of a SavedModel before it is loaded: none may lead out of the bundle unless the user allows it.

TensorFlow itself writes three kinds of file operations into SavedModels. They are accepted only where TensorFlow puts
them: saving (which loading never runs), restoring from the prefix that the loader gives, and filling a table from an
asset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from stoker.errors import first_line
from stoker.serve.bundle import BundleError
from stoker.serve.safety import operations
from stoker.tf_internals.graphs import get_node_name, list_callees
from stoker.tf_internals.types import ProtoMessage

_SAVE = frozenset({"SaveV2", "MergeV2Checkpoints"})
_RESTORE = frozenset({"RestoreV2"})
_TABLE = {"InitializeTableFromTextFileV2": 1}  # the input that is the file's name


def check_saved_model(place: Path, allowed: Collection[str]) -> None:
    """Check every graph and function of a SavedModel, without loading or running any.

    Args:
        place: the SavedModel's directory.
        allowed: operations that the user allows it.

    Raises:
        BundleError: the SavedModel cannot be read, or has an operation that is not allowed; the line names it.
    """
    from stoker.tf_internals.saving import parse_saved_model

    try:
        saved = parse_saved_model(str(place))
    except (OSError, ValueError) as error:
        raise BundleError(f"{place} cannot be read: {first_line(error)}") from None
    for graph in saved.meta_graphs:
        _Graph(place, graph).check(frozenset(allowed))


def outward_operations(place: Path) -> list[str]:
    """List by name the operations of a SavedModel that name files, addresses or code. Nothing is loaded or run.

    Raises:
        BundleError: the SavedModel cannot be read.
    """
    from stoker.tf_internals.saving import parse_saved_model

    try:
        saved = parse_saved_model(str(place))
    except (OSError, ValueError) as error:
        raise BundleError(f"{place} cannot be read: {first_line(error)}") from None
    found = {node.op for graph in saved.meta_graphs for _, node in _Graph(place, graph).nodes()}
    return sorted(filter(operations.leads_outside, found))


class _Graph:
    """One graph of a SavedModel with its functions, and which of them call which."""

    def __init__(self, place: Path, meta: ProtoMessage) -> None:
        self.place, self.meta = place, meta
        self.main = {node.name: node for node in meta.graph_def.node}
        self.functions = {one.signature.name: one for one in meta.graph_def.library.function}
        self.callers: dict[str, list[tuple[str, ProtoMessage]]] = {}
        for owner, node in self.nodes():
            for name in list_callees(node):
                self.callers.setdefault(name, []).append((owner, node))

    def nodes(self) -> Iterator[tuple[str, ProtoMessage]]:
        """Yield all nodes, each with the name of its function ("" in the main graph)."""
        for node in self.meta.graph_def.node:
            yield "", node
        for function in self.meta.graph_def.library.function:
            for node in function.node_def:
                yield function.signature.name, node

    def check(self, allowed: frozenset[str]) -> None:
        for asset in self.meta.asset_file_def:
            parts = PurePosixPath(asset.filename)
            if parts.is_absolute() or ".." in parts.parts or "\0" in asset.filename or not parts.parts:
                raise BundleError(f"{self.place} names the asset {asset.filename!r}, outside of the bundle")
        graph = self.meta.graph_def
        if len(self.main) != len(graph.node) or len(self.functions) != len(graph.library.function):
            raise BundleError(f"{self.place} is damaged: two nodes or functions have the same name")
        for owner, node in self.nodes():
            if node.op in allowed or operations.stays_inside(node):
                continue
            if not operations.is_registered(node.op) and node.op in self.functions:
                continue  # a call; its body is checked like all others
            if not self._is_in_its_place(owner, node):
                raise BundleError(self._refusal(owner, node))

    def _refusal(self, owner: str, node: ProtoMessage) -> str:
        where = f"node {node.name!r}" + (f" of function {owner!r}" if owner else "")
        if not operations.is_registered(node.op):
            what = "which TensorFlow does not have here"
        else:
            what = "which can reach outside the model (files, network, Python)"
        return (
            f"{self.place} has the operation {node.op} ({where}), {what}; "
            f"if you trust the bundle, allow it with --allow-ops {node.op} (allow_ops=[{node.op!r}])"
        )

    def _is_in_its_place(self, owner: str, node: ProtoMessage) -> bool:
        """Return whether a node is one of the file operations that TensorFlow itself writes, where it writes them."""
        if node.op in _TABLE:
            return self._fills_from_asset(owner, node)
        if node.op not in _SAVE | _RESTORE:
            return False
        call = self._only_call(owner)
        saver = self.meta.saver_def
        if call is None or owner in self.meta.object_graph_def.concrete_functions:
            return False
        # These run when the model is loaded or answers. Loading may not include saving either.
        roots = self._served_tensors()
        if node.op in _SAVE:
            roots.append(saver.restore_op_name)
            place = get_node_name(saver.save_tensor_name)
        else:
            place = saver.restore_op_name
            # It may restore from where the loader says, and from nowhere else.
            given = self._argument(owner, node.input[0], call)
            prefix = get_node_name(saver.filename_tensor_name)
            placeholder = self.main.get(prefix)
            if given is None or get_node_name(given) != prefix or placeholder is None:
                return False
            if placeholder.op != "Placeholder":
                return False
        return bool(call.name == place) and call.name not in self._ancestors(roots)

    def _fills_from_asset(self, owner: str, node: ProtoMessage) -> bool:
        """Return whether the file's name is an asset of the bundle, whoever calls the function."""
        source = node.input[_TABLE[node.op]]
        if not owner:
            return self._is_asset(source)
        call = self._only_call(owner)
        given = None if call is None else self._argument(owner, source, call)
        if given is None or not self._is_asset(given):
            return False
        objects = self.meta.object_graph_def
        if owner not in objects.concrete_functions:
            return True
        arguments = [one.name for one in self.functions[owner].signature.input_arg]
        bound = list(objects.concrete_functions[owner].bound_inputs)
        number = arguments.index(source) - (len(arguments) - len(bound))
        if not 0 <= number < len(bound) or not 0 <= bound[number] < len(objects.nodes):
            return False
        return bool(objects.nodes[bound[number]].WhichOneof("kind") == "asset")

    def _is_asset(self, tensor: str) -> bool:
        """Return whether a tensor of the main graph is an asset's path: its placeholder, or a variable of just that."""
        assets = {get_node_name(one.tensor_info.name) for one in self.meta.asset_file_def}
        node = self.main.get(get_node_name(tensor))
        if node is None:
            return False
        if node.op == "Placeholder":
            return node.name in assets
        if node.op != "ReadVariableOp":
            return False
        handle = self.main.get(get_node_name(node.input[0]))
        if handle is None or handle.op != "VarHandleOp":
            return False
        shared = _shared_name(handle)
        same = [one for _, one in self.nodes() if one.op == "VarHandleOp" and _shared_name(one) == shared]
        users = [one for one in self.main.values() if handle.name in map(get_node_name, one.input)]
        given = [one for one in users if one.op == "AssignVariableOp"]
        known = {"AssignVariableOp", "ReadVariableOp", "VarIsInitializedOp"}
        return (
            len(same) == 1
            and all(one.op in known for one in users)
            and all(self._is_asset_placeholder(one.input[1], assets) for one in given)
        )

    def _is_asset_placeholder(self, tensor: str, assets: set[str]) -> bool:
        node = self.main.get(get_node_name(tensor))
        return node is not None and node.op == "Placeholder" and node.name in assets

    def _only_call(self, function: str) -> ProtoMessage | None:
        """Return the node of the main graph that calls a function, if nothing else calls it."""
        calls = self.callers.get(function, [])
        return calls[0][1] if len(calls) == 1 and calls[0][0] == "" else None

    def _argument(self, function: str, name: str, call: ProtoMessage) -> str | None:
        """Return what a call passes for an argument of a function; None if there is no argument of that name."""
        arguments = [one.name for one in self.functions[function].signature.input_arg]
        given = [one for one in call.input if not one.startswith("^")]
        if name not in arguments or arguments.index(name) >= len(given):
            return None
        return str(given[arguments.index(name)])

    def _served_tensors(self) -> list[str]:
        """List what loading runs and what answers: the signatures, and the nodes that collections name."""
        found = []
        for signature in self.meta.signature_def.values():
            found += [one.name for one in (*signature.inputs.values(), *signature.outputs.values())]
        for collection in self.meta.collection_def.values():
            found += list(collection.node_list.value)
        return found

    def _ancestors(self, tensors: list[str]) -> set[str]:
        """Return all nodes that run to compute these tensors, including their own."""
        seen: set[str] = set()
        waiting = [get_node_name(one) for one in tensors]
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self.main:
                seen.add(name)
                waiting += [get_node_name(one) for one in self.main[name].input]
        return seen


def _shared_name(handle: ProtoMessage) -> str:
    shared = handle.attr["shared_name"].s.decode("utf-8", "replace")
    return shared or str(handle.name)
