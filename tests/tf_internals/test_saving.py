"""What writes and reads checkpoints, SavedModels and Keras files."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import saving
from tests.tf_internals.calls import recorded


class Doubler(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"doubled": 2 * x}


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("saved") / "model")
    module = Doubler()
    tf.saved_model.save(module, place, signatures=module.__call__)
    return place


def test_tensorflow_saves_and_restores_there(tmp_path: Path, saved_model: str) -> None:
    """`savers` and `restorers`."""
    checkpoint = tf.train.Checkpoint(value=tf.Variable(1.0))
    to_checkpoint, to_saved_model = saving.savers()
    from_checkpoint, from_saved_model = saving.restorers()
    with recorded(to_checkpoint) as saved, recorded(from_checkpoint) as restored:
        place = checkpoint.save(str(tmp_path / "checkpoint"))
        assert (len(saved), len(restored)) == (1, 0)
        checkpoint.restore(place)
        assert (len(saved), len(restored)) == (1, 1)
    with recorded(to_saved_model) as saved, recorded(from_saved_model) as restored:
        tf.saved_model.save(Doubler(), str(tmp_path / "again"))
        tf.saved_model.load(saved_model)
    assert (len(saved), len(restored)) == (1, 1)


def test_keras_saves_and_restores_there(tmp_path: Path) -> None:
    """`keras_savers` and `keras_restorers`."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    to_model, to_weights = saving.keras_savers()
    from_model, from_weights = saving.keras_restorers()
    with recorded(to_model) as models, recorded(to_weights) as weights:
        model.save(tmp_path / "model.keras")
        model.save_weights(tmp_path / "model.weights.h5")
    assert (len(models), len(weights)) == (1, 1)
    with recorded(from_model) as models, recorded(from_weights) as weights:
        keras.saving.load_model(tmp_path / "model.keras")
        model.load_weights(tmp_path / "model.weights.h5")
    assert (len(models), len(weights)) == (1, 1)


def test_parse_saved_model(saved_model: str, tmp_path: Path) -> None:
    (graph,) = saving.parse_saved_model(saved_model).meta_graphs
    assert "serving_default" in graph.signature_def
    assert graph.graph_def.library.function
    with pytest.raises((OSError, ValueError)):
        saving.parse_saved_model(str(tmp_path))


def test_load_into_session_and_session_callable(saved_model: str, caplog: pytest.LogCaptureFixture) -> None:
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph)
    with graph.as_default():
        meta = saving.load_into_session(session, saved_model, [tf.saved_model.SERVING])
    assert not caplog.records
    signature = meta.signature_def["serving_default"]
    call = saving.session_callable(session, [signature.inputs["x"].name], [signature.outputs["doubled"].name])
    assert [one.tolist() for one in call([np.array([1.0, 2.0], np.float32)])] == [[2.0, 4.0]]
    session.close()
