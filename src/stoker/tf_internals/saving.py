"""Checkpoints, SavedModels and Keras files: the functions that write and read them below the public API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stoker.tf_internals import Place
from stoker.tf_internals.types import Array, ProtoMessage


def savers() -> list[Place]:
    """Return the functions that every way to save goes through."""
    from tensorflow.python.checkpoint import checkpoint
    from tensorflow.python.saved_model import save

    return [(checkpoint.TrackableSaver, "save"), (save, "save_and_return_nodes")]


def restorers() -> list[Place]:
    """Return the functions that every way to restore goes through."""
    from tensorflow.python.checkpoint import checkpoint
    from tensorflow.python.saved_model import load

    return [(checkpoint.TrackableSaver, "restore"), (load, "load_partial")]


def keras_savers() -> list[Place]:
    """Return the functions that write Keras' own formats."""
    from keras.src.saving import saving_lib

    return [(saving_lib, "save_model"), (saving_lib, "save_weights_only")]


def keras_restorers() -> list[Place]:
    """Return the functions that read Keras' own formats."""
    from keras.src.saving import saving_lib

    return [(saving_lib, "load_model"), (saving_lib, "load_weights_only")]


def load_into_session(session: Any, directory: str, tags: Sequence[str]) -> ProtoMessage:
    """Load a SavedModel into a session's graph; return its meta graph.

    The public function prints that it is deprecated.
    """
    from tensorflow.python.saved_model import loader_impl

    return loader_impl.SavedModelLoader(directory).load(session, list(tags))


def parse_saved_model(directory: str) -> ProtoMessage:
    """Parse the message in a SavedModel, with its `meta_graphs`, without loading anything.

    Raises:
        OSError, ValueError: the SavedModel cannot be read.
    """
    from tensorflow.python.saved_model import loader_impl

    return loader_impl.parse_saved_model(directory)


def session_callable(
    session: Any, feeds: Sequence[str], fetches: Sequence[str]
) -> Callable[[list[Array]], list[Array]]:
    """Return a callable that runs a session's graph on arrays, given the names of the input and output tensors.

    The public `make_callable` resolves feeds and fetches in every call, which takes longer than a small model.
    """
    from tensorflow.core.protobuf import config_pb2

    call = session._make_callable_from_options(config_pb2.CallableOptions(feed=feeds, fetch=fetches))
    return lambda arrays: list(call(*arrays))
