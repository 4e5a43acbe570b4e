"""STK305: the cache freezes random augmentation or order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.chains import complete, is_random
from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.values import Stage


class CacheAfterRandom(Rule):
    """`cache` behind a random map or a shuffle."""

    kind = "cache-after-random"
    severity = "error"
    page = Page(
        what="Reports `cache()` that comes after a map with random augmentation, or after `shuffle` with no other "
        "`shuffle` behind the cache.",
        why="The cache keeps what the first epoch drew: every later epoch sees the same augmented images in the same "
        "order. The model trains on less variety than the code seems to give it.",
        known_problems="A shuffle that is meant to fix one order for a split (`reshuffle_each_iteration=False`) is "
        "left alone; other deliberate uses have to be allowed by a comment.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            def augment(image, label):
                image = tf.image.random_flip_left_right(image)
                return image, label

            train = tf.data.Dataset.from_tensor_slices((images, labels))
            train = train.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
            train = train.cache().shuffle(1000).batch(32).prefetch(2)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            train = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=4)
            train = train.shuffle(10000).cache().batch(64).prefetch(2)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            augmentation = tf.keras.Sequential([
                tf.keras.layers.RandomFlip("horizontal"),
                tf.keras.layers.RandomRotation(0.1),
            ])
            train = train_ds.map(lambda x, y: (augmentation(x, training=True), y), num_parallel_calls=4)
            train = train.cache()  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            def jitter(x):
                return x + tf.random.normal(tf.shape(x), stddev=0.1)

            def prepare(x):
                return jitter(tf.cast(x, tf.float32))

            ds = (
                tf.data.Dataset.from_tensor_slices(rows)
                .map(prepare, num_parallel_calls=4)
                .cache("/tmp/rows")  #!
                .batch(32)
            )
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            def augment(image, label):
                return tf.image.random_flip_left_right(image), label

            train = tf.data.Dataset.from_tensor_slices((images, labels)).cache()
            train = train.shuffle(1000).map(augment, num_parallel_calls=tf.data.AUTOTUNE)
            train = train.batch(32).prefetch(2)
            """
        ),
        good(
            """
            import tensorflow as tf

            ds = tf.data.Dataset.list_files("*.jpg", shuffle=False)
            ds = ds.shuffle(5000, seed=1, reshuffle_each_iteration=False)
            train = ds.skip(500).map(decode, num_parallel_calls=8).cache().batch(32)
            """
        ),
        good(
            """
            import tensorflow as tf

            ds = tf.data.Dataset.from_tensor_slices(paths).shuffle(10000)
            ds = ds.map(decode, num_parallel_calls=8).cache().shuffle(1000).batch(32)
            """
        ),
        good(
            """
            import tensorflow as tf

            def resize(image):
                return tf.image.resize(image, [64, 64])

            ds = tf.data.Dataset.from_tensor_slices(images).map(resize, num_parallel_calls=4).cache().batch(8)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Caches with something random above them."""
        for _, dataset in complete(analysis):
            for position, stage in enumerate(dataset.stages):
                if stage.name != "cache":
                    continue
                before, after = dataset.stages[:position], dataset.stages[position + 1 :]
                if any(s.name == "map" and is_random(s) for s in before):
                    message = "the cache keeps the first epoch's random augmentation for all epochs"
                    yield self.problem_at(stage.module, stage.node, message)
                elif any(_reshuffles(s) for s in before) and not any(s.name == "shuffle" for s in after):
                    message = "the cache keeps the first epoch's order for all epochs"
                    yield self.problem_at(stage.module, stage.node, message)


def _reshuffles(stage: Stage) -> bool:
    if stage.name != "shuffle":
        return False
    for keyword in stage.node.keywords:
        if keyword.arg == "reshuffle_each_iteration":
            return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    return True


RULE = CacheAfterRandom()
