"""STK102: NumPy data is converted and copied at every step."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.hoisting import hoisted
from stoker.doctor.check.rule import Page, Problem, Rule, bad, describe, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import CompiledCall, Feed
from stoker.doctor.check.source.values import Array


class NumpyFeedInLoop(Rule):
    """ndarrays that become tensors in code that runs at every step."""

    kind = "numpy-feed-in-loop"
    severity = "error"
    page = Page(
        what="Reports ndarrays that are turned into tensors in a loop of steps: by `tf.convert_to_tensor`, "
        "`tf.constant` or `tf.cast`, or by being passed to a compiled function, a model or `train_on_batch`.",
        why="Each conversion allocates, checks and copies on the Python thread, and on a GPU the copy to the device "
        "cannot overlap with the step before it. A tf.data pipeline prepares and copies batches in the background; "
        "an array that does not change needs to be converted only once.",
        fix_safety="Converting a loop-invariant array once, before the loop, is offered where the array is a plain name "
        "that the loop neither assigns, changes nor hands to anything that could change it. It is safe where the file "
        "also shows that nobody else holds the array: it is made once, by a call that gives a new array, and no view of "
        "it, no other name and no other function ever gets hold of it. Otherwise it is unsafe.",
        known_problems="Data that only exists at run time, such as the observation of a simulator, has to be copied "
        "at each step; allow it there with a comment.",
    )
    bad = (
        bad(
            """
            import numpy as np
            import tensorflow as tf

            data = np.random.rand(1024, 32).astype("float32")

            @tf.function
            def train_step(x):
                return tf.reduce_sum(x)

            for step in range(1000):
                x = tf.convert_to_tensor(data)  #!
                train_step(x)
            """,
            fixed="""
            import numpy as np
            import tensorflow as tf

            data = np.random.rand(1024, 32).astype("float32")

            @tf.function
            def train_step(x):
                return tf.reduce_sum(x)

            data_tensor = tf.convert_to_tensor(data)
            for step in range(1000):
                x = data_tensor
                train_step(x)
            """,
        ),
        bad(
            """
            import tensorflow as tf

            (x_train, y_train), _ = tf.keras.datasets.mnist.load_data()
            x_train = x_train / 255.0

            @tf.function
            def train_step(x, y):
                return tf.reduce_mean(model(x) - y)

            for epoch in range(5):
                for start in range(0, len(x_train), 64):
                    x = x_train[start : start + 64]
                    loss = train_step(x, y_train[start : start + 64])  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            for x, y in dataset.as_numpy_iterator():
                model.train_on_batch(x, y)  #!
            """
        ),
        bad(
            """
            import numpy as np
            import tensorflow as tf

            def batches(x, size):
                order = np.random.permutation(len(x))
                for i in range(0, len(x), size):
                    yield np.take(x, order[i : i + size], axis=0)

            model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
            for batch in batches(images, 32):
                features = model(batch, training=False)  #!
                total = total + tf.reduce_mean(features)
            """
        ),
    )
    good = (
        good(
            """
            import numpy as np
            import tensorflow as tf

            data = tf.convert_to_tensor(np.random.rand(1024, 32).astype("float32"))
            for step in range(1000):
                train_step(data)
            """
        ),
        good(
            """
            import numpy as np
            import tensorflow as tf

            x = np.load("x.npy")
            dataset = tf.data.Dataset.from_tensor_slices(x).batch(32).prefetch(2)

            @tf.function
            def train_step(batch):
                return tf.reduce_sum(batch)

            for batch in dataset:
                train_step(batch)
            """
        ),
        good(
            """
            import numpy as np
            import tensorflow as tf

            model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            sample = np.zeros((1, 8), dtype="float32")
            model(sample)
            for batch in dataset:
                train_step(batch)
            """
        ),
        good(
            """
            import numpy as np
            import tensorflow as tf

            for step in range(10000):
                loss = train_step(batch)
                if step % 1000 == 0:
                    noise = tf.convert_to_tensor(np.random.rand(16, 100))
                    save_images(generator(noise))
            """
        ),
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, rate):
                return tf.reduce_sum(x) * rate

            for batch in dataset:
                train_step(batch, tf.constant(0.1))
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Every conversion, and every call that gets an ndarray, at each step."""
        for fact in analysis.facts:
            if not fact.at.hot or fact.at.graph:
                continue
            if isinstance(fact, Feed):
                subject = describe(fact.argument) if fact.argument is not None else "an ndarray"
                message = f"{'the ndarray ' if fact.array else ''}{subject} {fact.how} at every step"
                yield self.problem(fact.at, message, hoisted(fact))
            elif isinstance(fact, CompiledCall):
                for node, value in fact.arguments:
                    if isinstance(value, Array):
                        message = (
                            f"the ndarray {describe(node)} is passed to a compiled function at every step"
                        )
                        yield self.problem(fact.at, message)
                        break


RULE = NumpyFeedInLoop()
