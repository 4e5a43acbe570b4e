"""The messages of all gRPC services, from the descriptor set that `make protos` compiles from `protos/*.proto`.

They have a pool of their own, because the client packages of TensorFlow Serving, Triton and KServe have messages with
the same names, and a process may import those packages, too.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import tensorflow as tf
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2
from google.protobuf.descriptor import FileDescriptor

from stoker.tf_internals.types import ProtoMessage

SERVING, INFERENCE = "tensorflow.serving", "inference"
# The files that ours import.
_NEEDS = (
    type(tf.make_tensor_proto(0)).DESCRIPTOR.file,
    wrappers_pb2.DESCRIPTOR,
    any_pb2.DESCRIPTOR,
    tf.train.Example.DESCRIPTOR.file,
    tf.compat.v1.MetaGraphDef.DESCRIPTOR.file,
)


def _add_file(pool: descriptor_pool.DescriptorPool, file: FileDescriptor, known: set[str]) -> None:
    for other in file.dependencies:
        _add_file(pool, other, known)
    if file.name not in known:
        known.add(file.name)
        copy = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(copy)
        pool.Add(copy)


@cache
def make_pool() -> descriptor_pool.DescriptorPool:
    """Return the pool with our files and everything that they import."""
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    for needed in _NEEDS:
        _add_file(pool, needed, known)
    compiled = resources.files(__package__).joinpath("protos").joinpath("services.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled).file:
        pool.Add(file)
    return pool


@cache
def message_class(name: str) -> type[ProtoMessage]:
    """Return the class of a message by its full name, such as "inference.ModelInferRequest"."""
    found: type[ProtoMessage] = message_factory.GetMessageClass(make_pool().FindMessageTypeByName(name))
    return found


def serving_message(name: str) -> ProtoMessage:
    """Return an empty message of TensorFlow Serving."""
    return message_class(f"{SERVING}.{name}")()
