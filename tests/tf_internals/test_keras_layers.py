"""Keras layers, models and losses."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from stoker.tf_internals import keras_layers
from tests.tf_internals.calls import recorded


def functional() -> keras.Model:
    inputs = {"a": keras.Input((3,), name="a"), "b": keras.Input((3,), name="b")}
    both = keras.layers.Add(name="both")(list(inputs.values()))
    inside = keras.Sequential([keras.layers.Dense(2), keras.layers.BatchNormalization()], name="inside")
    return keras.Model(inputs, {"out": inside(both)})


def test_layers_of_goes_deep() -> None:
    found = keras_layers.layers_of(functional())
    assert isinstance(found[0], keras.Model)
    kinds = [type(one).__name__ for one in found]
    assert kinds.count("Dense") == kinds.count("BatchNormalization") == 1


def test_inner_layers_are_the_outermost() -> None:
    model = functional()
    assert {one.name for one in keras_layers.inner_layers(model)} == {"a", "b", "both", "inside"}
    assert keras_layers.inner_layers(keras.layers.Dense(1)) == []


def test_own_variables_and_own_state() -> None:
    layer = keras.layers.BatchNormalization()
    layer.build((None, 2))
    names = [one.name for one in keras_layers.own_variables(layer)]
    assert names == ["gamma", "beta", "moving_mean", "moving_variance"]
    assert [one.name for one in keras_layers.own_state(layer)] == names[2:]
    layer.trainable = False
    assert [one.name for one in keras_layers.own_state(layer)] == names[2:]
    assert keras_layers.own_variables(functional()) == []


def test_seed_generators() -> None:
    (generator,) = keras_layers.seed_generators(keras.layers.Dropout(0.5, seed=1))
    assert isinstance(generator, keras.random.SeedGenerator)
    assert generator.state.shape == (2,)


def test_global_seed_generator_is_what_keras_random_draws_from() -> None:
    generator = keras_layers.global_seed_generator()
    before = generator.state.numpy().tolist()
    keras.random.uniform((1,))
    assert generator.state.numpy().tolist() != before
    assert keras_layers.global_seed_generator() is generator


def test_calls_of_a_layer_lead_to_its_parents() -> None:
    model = functional()
    (call,) = keras_layers.calls_of(model.get_layer("both"))
    assert [one.operation.name for one in call.parent_nodes] == ["a", "b"]
    assert len(call.input_tensors) == 2
    assert keras_layers.calls_of(keras.layers.Dense(1)) == []


def test_maker_of_a_tensor() -> None:
    model = functional()
    assert keras_layers.maker_of(model.get_layer("both").output) is model.get_layer("both")
    assert keras_layers.maker_of(tf.constant(1)) is None


def test_structures() -> None:
    """`input_structure` and `output_structure`."""
    model = functional()
    assert list(keras_layers.input_structure(model)) == ["a", "b"]
    assert list(keras_layers.output_structure(model)) == ["out"]
    sequential = keras.Sequential([keras.layers.Dense(1)])
    assert keras_layers.input_structure(sequential) is None
    sequential.build((None, 2))
    assert keras_layers.input_structure(sequential).shape == (None, 2)
    assert keras_layers.output_structure(keras.Model()) is None


def test_split_texts_gives_ragged_words() -> None:
    layer = keras.layers.TextVectorization(max_tokens=5)
    words = keras_layers.split_texts(layer, tf.constant(["One two!", ""]))
    assert words.to_list() == [[b"one", b"two"], []]
    assert words.row_lengths().numpy().tolist() == [2, 0]


def test_masks() -> None:
    """`mask_of` and `set_mask`."""
    embedding = keras.layers.Embedding(3, 1, mask_zero=True)
    out = embedding(tf.constant([[1, 0]]))
    assert keras_layers.mask_of(out).numpy().tolist() == [[True, False]]
    again = tf.identity(out)
    assert keras_layers.mask_of(again) is None
    keras_layers.set_mask(again, tf.constant([[True, True]]))
    assert keras_layers.mask_of(again).numpy().all()


@pytest.mark.parametrize(
    ("name", "numbered"),
    [("input_layer", True), ("input_layer_12", True), ("input", False), ("dense_1", False)],
)
def test_is_numbered_name(name: str, numbered: bool) -> None:
    assert keras_layers.is_numbered_name(name, keras.layers.InputLayer((1,))) is numbered


def test_names_that_keras_makes_are_numbered() -> None:
    layer = keras.layers.GlobalAveragePooling1D()
    assert keras_layers.is_numbered_name(layer.name, layer)


def test_takes_logits() -> None:
    crossentropy = keras.losses.SparseCategoricalCrossentropy
    assert keras_layers.takes_logits(crossentropy(from_logits=True)) is True
    assert keras_layers.takes_logits(crossentropy()) is False
    assert keras_layers.takes_logits("mse") is None


def test_losses_module_scales_for_replicas() -> None:
    module = keras_layers.losses_module()
    assert float(module.scale_loss_for_distribution(tf.constant(4.0))) == 4
    assert float(module.unscale_loss_for_distribution(tf.constant(4.0))) == 4
    with recorded((module, "scale_loss_for_distribution")) as calls:
        keras.losses.MeanSquaredError()(tf.zeros((2, 1)), tf.ones((2, 1)))
    assert len(calls) == 1


def test_every_layer_passes_where_it_is_made() -> None:
    """`layer_creation`."""
    with recorded(keras_layers.layer_creation()) as calls:
        made = keras.Sequential([keras.layers.Dense(1)])
    assert {id(call[0]) for call in calls} >= {id(made), id(made.layers[0])}


def test_tensorflow_variables_are_those_behind_keras_own() -> None:
    layer = keras.layers.Dense(1)
    layer.build((None, 2))
    (own,) = keras_layers.tensorflow_variables(layer.kernel)
    assert isinstance(own, tf.Variable)
    assert own.shape == (2, 1)


def test_a_scope_of_keras_knows_who_opened_it() -> None:
    """`scope_entry`: the scope of a second call has another name, its caller is the same."""
    layer, names = keras.layers.Dense(1, name="one"), list[str]()
    layer.build((None, 2))

    def call_twice(x: tf.Tensor) -> None:
        names.extend(layer(x).op.name for _ in range(2))

    with recorded(keras_layers.scope_entry()) as calls:
        tf.function(call_twice).get_concrete_function(tf.TensorSpec((1, 2)))
    assert layer in [call[0].caller for call in calls]
    assert names[0].split("/")[0] != names[1].split("/")[0]
