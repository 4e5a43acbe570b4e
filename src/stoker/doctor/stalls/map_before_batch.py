"""STK304: a cheap map runs once per element instead of once per batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.chains import complete
from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.values import Func, Method, Stage

# Element-wise functions: they do the same to a batch as to each of its elements.
_ELEMENTWISE = frozenset(
    {
        "tf.cast",
        "tf.lookup",
        "tf.math.divide",
        "tf.divide",
        "tf.subtract",
        "tf.add",
        "tf.multiply",
        "tf.math.multiply",
        "tf.math.log",
        "tf.math.log1p",
        "tf.math.exp",
        "tf.sqrt",
        "tf.square",
        "tf.abs",
        "tf.clip_by_value",
        "tf.one_hot",
        "tf.image.convert_image_dtype",
        "tf.constant",
        "tf.identity",
        "tf.where",
        "tf.minimum",
        "tf.maximum",
        "tf.zeros_like",
        "tf.ones_like",
        "tf.equal",
        "tf.not_equal",
    }
)
_BETWEEN = frozenset({"shuffle", "repeat", "prefetch", "cache", "take", "skip"})


class MapBeforeBatch(Rule):
    """Element-wise maps right before a batch."""

    kind = "map-before-batch"
    severity = "info"
    page = Page(
        what="Reports a `map` whose function only does element-wise arithmetic (a cast, a scaling, a one-hot) and that "
        "comes before `batch`, so that it is called for each element.",
        why="Calling a function costs some microseconds, whatever it does. For cheap arithmetic that is most of the "
        "cost, and after `batch` it is paid once for all elements of the batch.",
        known_problems="Functions that index or reshape their argument would have to be changed; only functions that "
        "work on a batch as they are get reported.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            def scale(image, label):
                return tf.cast(image, tf.float32) / 255.0, label

            dataset = tf.data.Dataset.from_tensor_slices((images, labels))
            dataset = dataset.map(scale, num_parallel_calls=tf.data.AUTOTUNE)  #!
            dataset = dataset.shuffle(1000).batch(128).prefetch(tf.data.AUTOTUNE)
            """
        ),
        bad(
            """
            import tensorflow as tf

            dataset = (
                tf.data.Dataset.from_tensor_slices(x)
                .map(lambda v: (v - 127.5) / 127.5)  #!
                .batch(64)
            )
            """
        ),
        bad(
            """
            import tensorflow as tf

            ds = tf.data.Dataset.from_tensor_slices((x, y))
            ds = ds.map(lambda a, b: (a, tf.one_hot(b, 10)), num_parallel_calls=4)  #!
            ds = ds.batch(32)
            """
        ),
        bad(
            """
            import tensorflow as tf

            def clean(row):
                return tf.clip_by_value(tf.cast(row, tf.float32), 0.0, 1.0)

            ds = tf.data.Dataset.range(1000).map(clean).padded_batch(16)  #!
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            def scale(image, label):
                return tf.cast(image, tf.float32) / 255.0, label

            dataset = tf.data.Dataset.from_tensor_slices((images, labels))
            dataset = dataset.shuffle(1000).batch(128).map(scale, num_parallel_calls=tf.data.AUTOTUNE)
            dataset = dataset.prefetch(tf.data.AUTOTUNE)
            """
        ),
        good(
            """
            import tensorflow as tf

            def load(path):
                return tf.image.resize(tf.io.decode_png(tf.io.read_file(path)), [32, 32]) / 255.0

            dataset = tf.data.Dataset.list_files("*.png").map(load, num_parallel_calls=8).batch(32)
            """
        ),
        good(
            """
            import tensorflow as tf

            dataset = dataset.map(lambda x: tf.image.random_flip_left_right(x), num_parallel_calls=4).batch(32)
            """
        ),
        good(
            """
            import tensorflow as tf

            dataset = tf.data.Dataset.from_tensor_slices(texts).map(tokenize, num_parallel_calls=4).batch(32)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Maps with a batch behind them and nothing between that would mind."""
        for _, dataset in complete(analysis):
            if dataset.inner:
                continue
            stages = dataset.stages
            for position, stage in enumerate(stages):
                if stage.name == "map" and _batch_follows(stages[position + 1 :]) and _is_elementwise(stage):
                    message = (
                        "this element-wise map runs for each element; after batch it would run once a batch"
                    )
                    yield self.problem_at(stage.module, stage.node, message)


def _batch_follows(rest: tuple[Stage, ...]) -> bool:
    for stage in rest:
        if stage.name in ("batch", "padded_batch"):
            return True
        if stage.name not in _BETWEEN and not (stage.name == "map" and _is_elementwise(stage)):
            return False
    return False


def _is_elementwise(stage: Stage) -> bool:
    names = {effect for effect in stage.effects if not effect.startswith("+")}
    function = stage.function
    if names == {"tf.lookup"} and isinstance(function, Method):
        return True
    if not isinstance(function, Func) or not names <= _ELEMENTWISE:
        return False
    works = False
    for node in ast.walk(function.node):
        if isinstance(node, ast.Subscript) and not (
            isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        ):
            return False
        works = works or isinstance(node, (ast.BinOp, ast.Call))
    return works


RULE = MapBeforeBatch()
