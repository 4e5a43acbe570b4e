"""STK505: fit() has no validation data."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.values import Py, Thing

_VALIDATES = frozenset({"validation_data", "validation_split", "validation_freq"})


class NoValidationData(Rule):
    """Fits over several epochs that nothing validates."""

    kind = "no-validation-data"
    severity = "info"
    page = Page(
        what="Reports `fit` over several epochs without `validation_data` or `validation_split` in a program that "
        "never calls `evaluate` either.",
        why="Nothing then tells when the model stops getting better, so the epochs after that are wasted, and early "
        "stopping has nothing to go by.",
        known_problems="Models without a target to validate, such as generators, are reported as well unless they "
        "define a `train_step` of their own.",
    )
    bad = (
        bad(
            """
            from tensorflow import keras

            model = keras.Sequential([keras.layers.Dense(1)])
            model.compile("adam", "mse")
            model.fit(x, y, epochs=100, batch_size=32)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            def train(ds):
                model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
                model.compile("adam", "mse")
                model.fit(ds, epochs=20)  #!
                model.save("model.keras")
            """
        ),
        bad(
            """
            from keras import Input, Model, layers

            EPOCHS = 50
            inputs = Input((4,))
            model = Model(inputs, layers.Dense(3, activation="softmax")(inputs))
            model.compile("sgd", "sparse_categorical_crossentropy")
            history = model.fit(features, labels, epochs=EPOCHS, verbose=0)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            class Trainer:
                def __init__(self):
                    self.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])

                def run(self, x, y, epochs):
                    self.model.fit(x, y, epochs=epochs)  #!
            """
        ),
    )
    good = (
        good(
            """
            from tensorflow import keras

            model = keras.Sequential([keras.layers.Dense(1)])
            model.compile("adam", "mse")
            model.fit(x, y, epochs=100, batch_size=32, validation_split=0.2)
            """
        ),
        good(
            """
            from tensorflow import keras

            model = keras.Sequential([keras.layers.Dense(1)])
            model.fit(x, y, epochs=5)
            print(model.evaluate(x_test, y_test))
            """
        ),
        good(
            """
            from tensorflow import keras

            model = keras.Sequential([keras.layers.Dense(1)])
            model.fit(x, y, epochs=5, **options)
            """
        ),
        good(
            """
            import tensorflow as tf
            from sklearn.ensemble import RandomForestClassifier

            RandomForestClassifier().fit(x, y)
            model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            model.fit(x, y)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Fits that name several epochs and no validation, in files that never evaluate."""
        calls = [fact for fact in analysis.facts if isinstance(fact, Call)]
        if any(fact.name == "model.evaluate" for fact in calls):
            return
        for fact in calls:
            if fact.name != "model.fit" or not _VALIDATES.isdisjoint(fact.keywords):
                continue
            if any(keyword.arg is None for keyword in fact.call.keywords) or len(fact.call.args) > 5:
                continue
            if isinstance(fact.receiver, Thing) and "instance" in fact.receiver.about:
                continue
            epochs = fact.keywords.get("epochs")
            if epochs is not None and not (isinstance(epochs, Py) and epochs.const == 1):
                yield self.problem(
                    fact.at, "nothing validates these epochs: pass validation_data or validation_split"
                )


RULE = NoValidationData()
