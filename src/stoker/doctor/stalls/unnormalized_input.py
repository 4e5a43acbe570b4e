"""STK502: raw 0..255 pixels go into the model."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.models import scales_input
from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.values import Array, Dataset, Seq, Tensor, Value


class UnnormalizedInput(Rule):
    """Pixels that nothing scales on their way into a model."""

    kind = "unnormalized-input"
    severity = "warning"
    page = Page(
        what="Reports `fit` on images of a well-known data set, or of a directory, that are neither scaled by the code "
        "nor by a `Rescaling`, `Normalization` or `BatchNormalization` layer at the start of the model.",
        why="Values up to 255 make the first layer's gradients hundreds of times too large: training needs many more "
        "steps, or never settles.",
        known_problems="Columns of tables are not judged: their range cannot be read off the code.",
    )
    bad = (
        bad(
            """
            from tensorflow import keras

            (x_train, y_train), _ = keras.datasets.fashion_mnist.load_data()
            model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10, activation="softmax")])
            model.compile("adam", "sparse_categorical_crossentropy")
            model.fit(x_train, y_train, epochs=5)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            (x, y), (a, b) = tf.keras.datasets.cifar10.load_data()
            train = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2)
            model = tf.keras.Sequential([tf.keras.layers.Conv2D(32, 3), tf.keras.layers.Dense(10)])
            model.fit(train, epochs=10)  #!
            """
        ),
        bad(
            """
            from tensorflow import keras

            train = keras.utils.image_dataset_from_directory("flowers", image_size=(180, 180))
            inputs = keras.Input((180, 180, 3))
            x = keras.layers.Conv2D(16, 3)(inputs)
            model = keras.Model(inputs, keras.layers.Dense(5)(x))
            model.fit(train, epochs=3)  #!
            """
        ),
        bad(
            """
            from keras.datasets import mnist
            from keras import Sequential, layers

            (x, y), _ = mnist.load_data()
            x = x.reshape(60000, 784).astype("float32")
            net = Sequential()
            net.add(layers.Dense(128, activation="relu"))
            net.add(layers.Dense(10, activation="softmax"))
            net.fit(x, y, epochs=5)  #!
            """
        ),
    )
    good = (
        good(
            """
            from tensorflow import keras

            (x_train, y_train), _ = keras.datasets.fashion_mnist.load_data()
            x_train = x_train / 255.0
            model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10, activation="softmax")])
            model.fit(x_train, y_train, epochs=5)
            """
        ),
        good(
            """
            from tensorflow import keras

            train = keras.utils.image_dataset_from_directory("flowers", image_size=(180, 180))
            model = keras.Sequential([keras.layers.Rescaling(1 / 255), keras.layers.Conv2D(16, 3)])
            model.fit(train, epochs=3)
            """
        ),
        good(
            """
            import tensorflow as tf

            (x, y), _ = tf.keras.datasets.mnist.load_data()
            ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
            ds = ds.map(lambda a, b: (tf.cast(a, tf.float32) / 255.0, b), num_parallel_calls=4).prefetch(2)
            model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
            model.fit(ds)
            """
        ),
        good(
            """
            from tensorflow import keras

            train = keras.utils.image_dataset_from_directory("flowers", image_size=(224, 224))
            inputs = keras.Input((224, 224, 3))
            x = keras.applications.efficientnet.EfficientNetB0(include_top=False)(inputs)
            model = keras.Model(inputs, keras.layers.Dense(5)(x))
            model.fit(train, epochs=3)
            """
        ),
        good(
            """
            from tensorflow import keras

            (x, y), _ = keras.datasets.imdb.load_data(num_words=10000)
            model = keras.Sequential([keras.layers.Embedding(10000, 16), keras.layers.Dense(1)])
            model.fit(x, y)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Fits on raw pixels by models that do not scale."""
        for fact in analysis.facts:
            if not isinstance(fact, Call) or fact.name != "model.fit":
                continue
            pixels = _pixels(fact.argument(0, "x"))
            if pixels and not scales_input(fact.receiver):
                yield self.problem(fact.at, f"raw 0..255 pixels ({pixels}) go into the model")


def _pixels(value: Value | None) -> str:
    if isinstance(value, Dataset):
        value = value.element
    if isinstance(value, Seq) and value.items:
        value = value.items[0]
    return value.pixels if isinstance(value, (Array, Tensor)) else ""


RULE = UnnormalizedInput()
