"""STK303: the input comes from Python: one thread, under the GIL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call

_NAMES = {
    "tf.py_function": "tf.py_function",
    "tf.numpy_function": "tf.numpy_function",
    "tf.py_func": "tf.py_func",
    "tf1.py_func": "tf.py_func",
    "tf1.py_function": "tf.py_function",
}
_LOADING = re.compile(
    r"load|read|pars|decod|preproc|augment|transform|process_|_map|wrap|tf_|image|audio|encode|token"
)


class PythonInputPipeline(Rule):
    """`from_generator`, `py_function` and `numpy_function` in input pipelines."""

    kind = "python-input-pipeline"
    severity = "warning"
    page = Page(
        what="Reports `tf.data.Dataset.from_generator`, and `tf.py_function` or `tf.numpy_function` where they are "
        "mapped over a pipeline.",
        why="Elements then come out of Python one at a time under the interpreter's lock. `num_parallel_calls` does "
        "not help, the training loop competes for the same lock, and each element is copied into a tensor.",
        known_problems="A generator in front of a slow source, such as a database, may be as fast as anything else.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            def rows():
                for path in paths:
                    yield read(path)

            dataset = tf.data.Dataset.from_generator(rows, output_types=tf.float32)  #!
            dataset = dataset.batch(32).prefetch(2)
            """
        ),
        bad(
            """
            import tensorflow as tf

            def load(path):
                image = tf.numpy_function(read_image, [path], tf.float32)  #!
                return tf.ensure_shape(image, [64, 64, 3])

            dataset = tf.data.Dataset.list_files("*.npy").map(load, num_parallel_calls=8)
            """
        ),
        bad(
            """
            import tensorflow as tf

            dataset = dataset.map(
                lambda x, y: (tf.py_function(augment, [x], tf.float32), y),  #!
                num_parallel_calls=tf.data.AUTOTUNE,
            )
            """
        ),
        bad(
            """
            from tensorflow.data import Dataset
            import tensorflow as tf

            def as_dataset(reader):
                return Dataset.from_generator(  #!
                    lambda: iter(reader), output_signature=tf.TensorSpec([None])
                )
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            def load(path):
                return tf.io.decode_raw(tf.io.read_file(path), tf.float32)

            dataset = tf.data.Dataset.list_files("*.bin").map(load, num_parallel_calls=8).batch(32).prefetch(2)
            """
        ),
        good(
            """
            import tensorflow as tf

            class Metric(tf.keras.metrics.Metric):
                def update_state(self, y, p, sample_weight=None):
                    self.total.assign_add(tf.py_function(score, [y, p], tf.float32))
            """
        ),
        good(
            """
            import tensorflow as tf

            dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(32).prefetch(2)
            """
        ),
        good(
            """
            import numpy as np
            import tensorflow as tf

            def from_generator(rows):
                return np.stack(list(rows))

            data = from_generator(read_rows())
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Generators anywhere, Python functions in graphs that are not a model's."""
        for fact in analysis.facts:
            if not isinstance(fact, Call):
                continue
            if fact.name.endswith("Dataset.from_generator"):
                yield self.problem(
                    fact.at, "elements come out of a Python generator, one at a time under the GIL"
                )
            elif fact.name in _NAMES and _feeds(fact):
                yield self.problem(
                    fact.at, f"`{_NAMES[fact.name]}` runs Python for each element, under the GIL"
                )


def _feeds(fact: Call) -> bool:
    """Whether it is on the data's way in: in a mapped function, or in one whose name says so."""
    name = getattr(fact.at.function, "name", "")
    return fact.at.mapped or bool(_LOADING.search(name.lower()))


RULE = PythonInputPipeline()
