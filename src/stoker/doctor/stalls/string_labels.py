"""STK503: labels are strings."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.values import Array, Dataset, Py, Seq, Tensor, Value


class StringLabels(Rule):
    """Strings handed to `fit` as labels."""

    kind = "string-labels"
    severity = "error"
    page = Page(
        what="Reports `fit` with labels that the code shows to be strings: a list or array of strings, or a pipeline "
        "whose second part is the piece of a path.",
        why="Losses compute with numbers. Training stops at the first step, after all the loading is done.",
        known_problems="Columns of a data frame have no type that can be read off the code.",
    )
    bad = (
        bad(
            """
            import numpy as np
            from tensorflow import keras

            labels = np.array(["cat", "dog", "cat"])
            model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
            model.compile("adam", "sparse_categorical_crossentropy")
            model.fit(images, labels, epochs=5)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            def load(path):
                image = tf.io.decode_jpeg(tf.io.read_file(path))
                label = tf.strings.split(path, "/")[-2]
                return image, label

            ds = tf.data.Dataset.list_files("*/*.jpg").map(load, num_parallel_calls=8).batch(32).prefetch(2)
            model.fit(ds, epochs=3)  #!
            """
        ),
        bad(
            """
            from keras import Sequential, layers

            names = ["red", "green", "blue", "red"]
            model = Sequential([layers.Dense(3)])
            model.fit(x, names)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            species = ["setosa", "virginica"]
            ds = tf.data.Dataset.from_tensor_slices((rows, species)).batch(8).prefetch(1)
            model.fit(ds)  #!
            """
        ),
    )
    good = (
        good(
            """
            import numpy as np
            from tensorflow import keras

            lookup = keras.layers.StringLookup(vocabulary=["cat", "dog"], num_oov_indices=0)
            labels = lookup(np.array(["cat", "dog", "cat"]))
            model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
            model.fit(images, labels, epochs=5)
            """
        ),
        good(
            """
            import tensorflow as tf

            def load(path):
                image = tf.io.decode_jpeg(tf.io.read_file(path))
                label = tf.argmax(tf.strings.split(path, "/")[-2] == class_names)
                return image, label

            ds = tf.data.Dataset.list_files("*/*.jpg").map(load, num_parallel_calls=8).batch(32).prefetch(2)
            model.fit(ds, epochs=3)
            """
        ),
        good(
            """
            import numpy as np
            from tensorflow import keras

            texts = np.array(["good film", "bad film"])
            model = keras.Sequential([vectorize, keras.layers.Dense(1)])
            model.fit(texts, np.array([1, 0]), epochs=2)
            """
        ),
        good(
            """
            from sklearn.linear_model import LogisticRegression
            import tensorflow as tf

            LogisticRegression().fit(x, ["a", "b"])
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Fits whose labels are known to be strings."""
        for fact in analysis.facts:
            if isinstance(fact, Call) and fact.name == "model.fit" and _is_text(_labels(fact)):
                yield self.problem(fact.at, "the labels are strings: map them to integers first")


def _labels(fact: Call) -> Value | None:
    data = fact.argument(0, "x")
    if isinstance(data, Dataset):
        element = data.element
        if isinstance(element, Seq) and element.items is not None and len(element.items) >= 2:
            return element.items[1]
        return None
    return fact.argument(1, "y")


def _is_text(value: Value | None) -> bool:
    if isinstance(value, (Array, Tensor)):
        return value.dtype == "string"
    if isinstance(value, Seq) and value.kind == "list":
        items = value.items or (value.element,)
        return all(isinstance(item, Py) and item.type == "str" for item in items)
    return False


RULE = StringLabels()
