"""STK101: a tensor is read back to the host at every step."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Page, Problem, Rule, bad, describe, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import TensorRead


class SyncInLoop(Rule):
    """Reads of tensors in code that runs at every step."""

    kind = "sync-in-loop"
    severity = "error"
    page = Page(
        what="Reports every place in a training, evaluation or inference loop where Python needs a tensor's value: "
        "`.numpy()`, `float(t)`, `if t:`, an f-string, `np.mean(t)`, a progress bar's postfix, an element stored into "
        "an ndarray. Reads that happen rarely (every N steps, once an epoch, in the first iteration) are left alone.",
        why="The device runs ahead of Python: while a step computes, Python already prepares the next. A read makes "
        "Python wait until everything before it is finished, and while Python waits nothing new is queued, so the "
        "device idles as soon as it is done.",
        known_problems="A tensor that is known to be on the CPU anyway may be reported when it went through an "
        "operation that a GPU would have taken over. Reads inside library code are not seen.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, y):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(model(x) - y))
                grads = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(grads, model.trainable_variables))
                return loss

            for x, y in dataset:
                loss = train_step(x, y)
                losses.append(loss.numpy())  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            optimizer = tf.keras.optimizers.Adam()

            def train(dataset):
                for batch in dataset:
                    loss = train_step(batch)
                    if optimizer.iterations % 100 == 0:  #!
                        print("step", float(loss))
            """
        ),
        bad(
            """
            from tensorflow import keras
            from tqdm import tqdm

            mean_loss = keras.metrics.Mean()

            def evaluate(model, batches):
                bar = tqdm(batches)
                for x, y in bar:
                    mean_loss.update_state(keras.losses.mse(y, model(x)))
                    bar.set_postfix(loss=mean_loss.result())  #!
            """
        ),
        bad(
            """
            import numpy as np
            import tensorflow as tf

            model = tf.keras.models.load_model("m.keras")
            scores = np.zeros(1000)
            for i in range(1000):
                logits = model(samples[i])
                scores[i] = tf.reduce_max(logits)  #!
                best = max(best, logits[0, 0])  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            def report(loss, step):
                print(f"{step}: {loss:.4f}")  #!

            def loop(step_fn):
                compiled = tf.function(step_fn)
                for step in range(10000):
                    loss = compiled(tf.constant(1.0))
                    report(loss, step)
            """
        ),
        bad(
            """
            import tensorflow as tf

            class LossLog(tf.keras.callbacks.Callback):
                def on_train_batch_end(self, batch, logs=None):
                    self.rates.append(self.model.optimizer.learning_rate.numpy())  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            error = tf.constant(1.0)
            while error > 1e-3:  #!
                x, error = solve(x)
                error = tf.norm(error)
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, y):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(model(x) - y))
                grads = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(grads, model.trainable_variables))
                return loss

            for step, (x, y) in enumerate(dataset):
                loss = train_step(x, y)
                losses.append(loss)
                if step % 100 == 0:
                    print("loss", loss.numpy())
            """
        ),
        good(
            """
            import tensorflow as tf

            mean_loss = tf.keras.metrics.Mean()

            def train(dataset, epochs):
                for epoch in range(epochs):
                    for batch in dataset:
                        mean_loss.update_state(train_step(batch))
                    print(epoch, mean_loss.result().numpy())
                    mean_loss.reset_state()
            """
        ),
        good(
            """
            import tensorflow as tf

            for images, labels in dataset.take(1):
                preview = model(images)
                print(preview.numpy())
            """
        ),
        good(
            """
            import tensorflow as tf

            def read(path):
                return load(path.numpy().decode())

            dataset = tf.data.Dataset.list_files("*.png")
            dataset = dataset.map(lambda p: tf.py_function(read, [p], tf.float32), num_parallel_calls=4)
            """
        ),
        good(
            """
            import tensorflow as tf

            for step in range(1000):
                loss = train_step(batch)
                if step % 50 != 0:
                    continue
                print("loss", float(loss))
            """
        ),
        good(
            """
            import tensorflow as tf

            for weight in model.trainable_variables:
                print(weight.name, weight.numpy().mean())
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Every read that runs at each step outside a graph."""
        for fact in analysis.facts:
            if isinstance(fact, TensorRead) and fact.at.hot and not fact.at.graph:
                message = f"{describe(fact.at.node)} {fact.how} at every step: Python waits for the device"
                yield self.problem(fact.at, message)


RULE = SyncInLoop()
