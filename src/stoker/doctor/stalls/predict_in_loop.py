"""STK501: predict() is called for a few rows at a time in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import replace_node
from stoker.doctor.check.rule import Fix, Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.values import Dataset, Seq


class PredictInLoop(Rule):
    """Keras `predict` in a loop over rows, images or steps."""

    kind = "predict-in-loop"
    severity = "error"
    page = Page(
        what="Reports `predict` of a Keras model inside a loop over rows, files, frames or steps, also when a function "
        "between them makes the call. Once after each `fit` or epoch is fine, and so are a loop over several models, "
        "a `predict` that the program defines itself, and the `predict` of other libraries.",
        why="`predict` is made for many rows: each call sets up a dataset, callbacks and an iterator, some 50 ms, "
        "whatever the input. A call of the model itself takes 1 ms, a compiled one less.",
        fix_safety="Unsafe: `model(x, training=False).numpy()` computes the same, but takes neither lists nor datasets "
        "and does not split a large input into batches.",
        known_problems="A loop over a few large chunks is reported as well, although it costs little there.",
    )
    bad = (
        bad(
            """
            import numpy as np
            from tensorflow import keras

            model = keras.models.load_model("digits.keras")
            for image in images:
                scores = model.predict(image[np.newaxis])  #!
                labels.append(scores.argmax())
            """,
            fixed="""
            import numpy as np
            from tensorflow import keras

            model = keras.models.load_model("digits.keras")
            for image in images:
                scores = model(image[np.newaxis], training=False).numpy()
                labels.append(scores.argmax())
            """,
        ),
        bad(
            """
            import cv2
            import numpy as np
            import tensorflow as tf

            model = tf.keras.models.load_model("faces.h5")

            def classify(frame):
                small = cv2.resize(frame, (64, 64))
                return model.predict(np.expand_dims(small, 0))[0]  #!

            capture = cv2.VideoCapture(0)
            while True:
                ok, frame = capture.read()
                print(classify(frame))
            """
        ),
        bad(
            """
            import tensorflow as tf

            class DQN:
                def __init__(self):
                    self.model = tf.keras.Sequential([tf.keras.layers.Dense(2)])

                def act(self, state):
                    return self.model.predict(state)[0].argmax()  #!

                def play(self, env):
                    for step in range(500):
                        env.step(self.act(env.state))
            """
        ),
        bad(
            """
            import tensorflow as tf

            generator = tf.keras.Sequential([tf.keras.layers.Dense(8)])
            critic = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            for step in range(20000):
                fake = generator.predict(noise(64))  #!
                critic.train_on_batch(fake, zeros)
            """
        ),
        bad(
            """
            import random
            from keras import Sequential, layers

            class Agent:
                def __init__(self):
                    self.model = Sequential([layers.Dense(2)])

                def replay(self, size):
                    for state, action, reward, after in random.sample(self.memory, size):
                        goal = self.model.predict(state)  #!
                        goal[0][action] = reward + self.model.predict(after).max()  #!
                        self.model.fit(state, goal, epochs=1, verbose=0)
            """
        ),
        bad(
            """
            from keras.models import load_model

            model = load_model("m.h5")
            results = [model.predict(row) for row in rows]  #!
            """
        ),
    )
    good = (
        good(
            """
            import numpy as np
            from tensorflow import keras

            model = keras.models.load_model("digits.keras")
            scores = model.predict(np.stack(images), batch_size=256)
            labels = scores.argmax(axis=1)
            """
        ),
        good(
            """
            from tensorflow import keras

            for fold, (train, test) in enumerate(folds):
                model = keras.Sequential([keras.layers.Dense(1)])
                model.compile("adam", "mse")
                model.fit(x[train], y[train], epochs=10)
                scores[fold] = rmse(y[test], model.predict(x[test]))
            """
        ),
        good(
            """
            import tensorflow as tf
            from sklearn.linear_model import LogisticRegression

            model = LogisticRegression()
            for row in rows:
                print(model.predict([row]))
            """
        ),
        good(
            """
            import tensorflow as tf

            class Fast(tf.keras.Model):
                def predict(self, x):
                    return self.graph(x)

            fast = Fast()
            for batch in batches:
                fast.predict(batch)
            """
        ),
        good(
            """
            from tensorflow import keras

            models = [keras.models.load_model(path) for path in paths]
            votes = [model.predict(x_test) for model in models]
            """
        ),
        good(
            """
            from tensorflow import keras

            model = keras.Sequential([keras.layers.Dense(1)])
            for epoch in range(20):
                for x, y in batches:
                    model.train_on_batch(x, y)
                plot(model.predict(grid))
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Calls that run again and again on data of the loop."""
        for fact in analysis.facts:
            if not isinstance(fact, Call) or fact.name != "model.predict" or not fact.at.hot:
                continue
            if fact.loop_strong or _is_whole(fact):
                continue
            message = "predict() is called for each round of the loop; it costs tens of milliseconds a call"
            yield self.problem(fact.at, message, _called(fact))


def _is_whole(fact: Call) -> bool:
    """Whether a whole data set goes in, or the loop is over models rather than over data."""
    given = fact.argument(0, "x")
    if isinstance(given, Dataset):
        return True
    receiver = fact.call.func.value if isinstance(fact.call.func, ast.Attribute) else None
    loop = fact.at.loop
    targets = _targets(loop)
    if isinstance(receiver, ast.Name) and receiver.id in targets:
        return True
    return isinstance(given, Seq) and given.source is not None and isinstance(given.source, Dataset)


def _targets(loop: ast.AST | None) -> set[str]:
    nodes: list[ast.expr] = []
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        nodes = [loop.target]
    elif isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        nodes = [generator.target for generator in loop.generators]
    return {child.id for node in nodes for child in ast.walk(node) if isinstance(child, ast.Name)}


def _called(fact: Call) -> Fix | None:
    module, call = fact.at.module, fact.call
    if (
        len(call.args) != 1
        or not isinstance(call.func, ast.Attribute)
        or isinstance(call.args[0], ast.Starred)
    ):
        return None
    if any(keyword.arg != "verbose" for keyword in call.keywords) or isinstance(
        call.args[0], (ast.List, ast.Tuple)
    ):
        return None
    owner, given = module.segment(call.func.value), module.segment(call.args[0])
    if "\n" in owner or "\n" in given:
        return None
    return Fix(
        "unsafe", (replace_node(module, call, f"{owner}({given}, training=False).numpy()"),), "Call the model"
    )


RULE = PredictInLoop()
