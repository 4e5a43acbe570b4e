"""The operations of TensorFlow that stay inside the model: they only compute, and touch no file, network or Python.

The rule reads the operation's own definition, so it covers operations of later versions, too. A stateless operation is
accepted if nothing in its definition names a file, an address or code. Of stateful operations, only the kinds that
inference needs are accepted.
"""

from __future__ import annotations

import re
from functools import cache

from stoker.tf_internals import graphs
from stoker.tf_internals.types import ProtoMessage

# An input, output or attribute with one of these words leads out of the model.
_OUTWARD = re.compile(
    r"(^|_)(file|files|filename|filenames|filespec|path|dir|url|urls|uri|address|addresses|host_port|debug_urls|"
    r"debug_ops_spec|memory_region_name|descriptor_source|token|module|target_name|graph_def)(_|$)"
)
# Pipelines read files and are built from serialized graphs. Names that begin with "_" are TensorFlow's own.
_OUTWARD_NAMES = re.compile(r"^_|Dataset|^Debug|^Abort$")
_TERMINALS = frozenset({b"", b"stdout", b"stderr", b"log(info)", b"log(warning)", b"log(error)"})
# It formats a text that only `SaveV2` would open.
_HARMLESS = frozenset({"ShardedFilename"})

_OF_EVERY_SAVED_MODEL = frozenset(
    {
        "SaveV2",
        "RestoreV2",
        "MergeV2Checkpoints",
        "ShardedFilename",
        "InitializeTableFromTextFileV2",
        "SaveSlices",
    }
)

# The accepted stateful operations, all reviewed, grouped by the state they keep.
_STATE_OF_INFERENCE = re.compile(
    "|".join(
        (
            # control flow; the bodies are functions of the same graph and are checked like all others
            r"If|While|Case|StatefulPartitionedCall|XlaIf|XlaWhile|Assert|GuaranteeConst|Empty|DeepCopy|DeviceIndex",
            # variables
            r"VarHandleOp|ReadVariableOp|Assign(Add|Sub)?VariableOp|VarIsInitializedOp|VariableShape|DestroyResourceOp",
            r"DisableCopyOnRead|IsResourceHandleRefCounting|ResourceGather(Nd)?|ResourceScatter\w+",
            r"ResourceStridedSliceAssign",
            # tables in memory
            r"(Anonymous)?(Mutable)?(Dense)?HashTable(OfTensors)?(V2)?|LookupTable\w+|InitializeTableV2",
            # lists of tensors
            r"TensorArray\w*|Stack(Push|Pop|Close)?(V2)?",
            # random numbers
            r"Random(Uniform|UniformInt|StandardNormal|Gamma|Poisson|PoissonV2|Shuffle|Crop)|TruncatedNormal",
            r"ParameterizedTruncatedNormal|Multinomial|Stateful(StandardNormal|TruncatedNormal|Uniform|Random)\w*",
            r"Rng(ReadAnd)?Skip|NonDeterministicInts|StatelessRandomGetAlg|SampleDistortedBoundingBox(V2)?",
            # arithmetic that TensorFlow marks as stateful for other reasons; prints go to the terminal
            r"CheckNumerics(V2)?|CudnnRNN(V2|V3)?|Print|PrintV2",
        )
    )
)


def stays_inside(node: ProtoMessage) -> bool:
    """Return whether a node of a graph only computes."""
    if node.op == "PrintV2":
        return node.attr["output_stream"].s in _TERMINALS
    return _is_safe(node.op)


def leads_outside(name: str) -> bool:
    """Return whether an operation names a file, an address or code, and SavedModels do not need it for loading."""
    definition = graphs.definition(name)
    if definition is None or name in _OF_EVERY_SAVED_MODEL:
        return False
    words = [one.name for one in (*definition.input_arg, *definition.output_arg, *definition.attr)]
    return any(_OUTWARD.search(word) for word in words)


def is_registered(name: str) -> bool:
    """Return whether this TensorFlow has an operation of that name."""
    return graphs.definition(name) is not None


@cache
def _is_safe(name: str) -> bool:
    definition = graphs.definition(name)
    if definition is None or _OUTWARD_NAMES.search(name):
        return False
    if name in _HARMLESS:
        return True
    words = [one.name for one in (*definition.input_arg, *definition.output_arg, *definition.attr)]
    if any(_OUTWARD.search(word) for word in words):
        return False
    return not definition.is_stateful or _STATE_OF_INFERENCE.fullmatch(name) is not None
