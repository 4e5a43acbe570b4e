"""Compiles the .proto files of `stoker.serve.grpc` into one descriptor set, which the server reads: `make protos`.

A descriptor set and not Python code: code that protoc writes works with some versions of protobuf only, and claims its
messages' names for the whole process, where a client's package may already have them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import tensorflow as tf
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

PROTOS = Path(__file__).parents[1] / "src/stoker/serve/grpc/protos"
OURS = ("tensorflow_serving.proto", "open_inference.proto", "health.proto", "reflection.proto")
# Messages of TensorFlow that ours contain; its package has no .proto files, but knows what they said.
NEEDED = (
    type(tf.make_tensor_proto(0)).DESCRIPTOR.file,
    tf.train.Example.DESCRIPTOR.file,
    tf.compat.v1.MetaGraphDef.DESCRIPTOR.file,
)


def tensorflow_files() -> descriptor_pb2.FileDescriptorSet:
    """TensorFlow's files with all that they import, each after what it needs."""
    found = descriptor_pb2.FileDescriptorSet()
    known: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in known:
            return
        known.add(file.name)
        for other in file.dependencies:
            add(other)
        file.CopyToProto(found.file.add())

    for file in NEEDED:
        add(file)
    return found


def compile_protos(target: Path) -> int:
    """Write the descriptor set of our files, in a process of its own: protoc does not work beside TensorFlow."""
    with tempfile.NamedTemporaryFile(suffix=".binpb") as given:
        given.write(tensorflow_files().SerializeToString())
        given.flush()
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--descriptor_set_in={given.name}"]
        command += [f"--proto_path={PROTOS}", f"--descriptor_set_out={target}", *OURS]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(compile_protos(Path(sys.argv[1]) if len(sys.argv) > 1 else PROTOS / "services.binpb"))
