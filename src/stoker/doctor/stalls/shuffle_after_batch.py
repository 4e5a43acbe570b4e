"""STK306: batches are shuffled, not examples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.chains import complete
from stoker.doctor.check.edits import insert_after, remove_between
from stoker.doctor.check.rule import Fix, Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.values import Stage

_BATCHING = frozenset({"batch", "padded_batch"})


class ShuffleAfterBatch(Rule):
    """`shuffle` behind `batch`."""

    kind = "shuffle-after-batch"
    severity = "warning"
    page = Page(
        what="Reports `shuffle` after `batch` when no further `batch` or `unbatch` follows.",
        why="The same examples stay together in every epoch; only the order of the batches changes. The buffer also "
        "holds whole batches: its size counts batches, not examples.",
        fix_safety="Unsafe: the examples come in another order, which is the point.",
        known_problems="A `batch` that forms one example out of several (a text window) is recognised by the second "
        "`batch` behind the shuffle.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).shuffle(1000)  #!
            model.fit(ds.prefetch(2))
            """,
            fixed="""
            import tensorflow as tf

            ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
            model.fit(ds.prefetch(2))
            """,
        ),
        bad(
            """
            import tensorflow as tf

            train = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=4)
            train = train.batch(BATCH)
            train = train.shuffle(buffer_size=100)  #!
            train = train.prefetch(tf.data.AUTOTUNE)
            """
        ),
        bad(
            """
            import tensorflow as tf

            ds = (
                tf.data.TextLineDataset("corpus.txt")
                .map(encode, num_parallel_calls=4)
                .padded_batch(64)
                .cache()
                .shuffle(500)  #!
                .prefetch(1)
            )
            """
        ),
        bad(
            """
            import tensorflow as tf

            def batched(ds):
                return ds.batch(16, drop_remainder=True)

            ds = batched(tf.data.Dataset.range(10000)).shuffle(64)  #!
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
            model.fit(ds.prefetch(2))
            """
        ),
        good(
            """
            import tensorflow as tf

            chars = tf.data.Dataset.from_tensor_slices(ids)
            sequences = chars.batch(101, drop_remainder=True)
            ds = sequences.map(split, num_parallel_calls=4).shuffle(10000).batch(64, drop_remainder=True)
            """
        ),
        good(
            """
            import tensorflow as tf

            ds = tf.data.TFRecordDataset(files).batch(1000).map(parse_many, num_parallel_calls=4)
            ds = ds.unbatch().shuffle(5000).batch(32)
            """
        ),
        good(
            """
            import random
            import tensorflow as tf

            files = tf.io.gfile.glob("*.tfrecord")
            random.shuffle(files)
            ds = tf.data.TFRecordDataset(files).batch(32)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Shuffles whose nearest batching is above them."""
        for _, dataset in complete(analysis):
            batched: Stage | None = None
            found: tuple[Stage, Stage] | None = None
            for stage in dataset.stages:
                if stage.name in _BATCHING:
                    batched, found = stage, None
                elif stage.name in ("unbatch", "flat_map", "window"):
                    batched = found = None
                elif stage.name == "shuffle" and batched is not None:
                    found = (batched, stage)
            if found is not None:
                message = "whole batches are shuffled here: the same examples stay together in every epoch"
                yield self.problem_at(found[1].module, found[1].node, message, _swapped(*found))


def _swapped(batch: Stage, shuffle: Stage) -> Fix | None:
    """`.batch(b).shuffle(s)` in one expression becomes `.shuffle(s).batch(b)`."""
    module, function = shuffle.module, shuffle.node.func
    if not isinstance(function, ast.Attribute) or function.value is not batch.node:
        return None
    if not isinstance(batch.node.func, ast.Attribute):
        return None
    whole, head = module.segment(shuffle.node), module.segment(batch.node)
    tail = whole[len(head) :]
    if not head or "#" in tail or not tail.strip().startswith("."):
        return None
    edits = (
        insert_after(module, batch.node.func.value, tail),
        remove_between(module, batch.node, shuffle.node),
    )
    return Fix("unsafe", edits, "Shuffle before batch")


RULE = ShuffleAfterBatch()
