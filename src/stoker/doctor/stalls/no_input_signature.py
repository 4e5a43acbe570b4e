"""STK206: a tf.function with varying inputs has no input_signature."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import add_argument, insert_after
from stoker.doctor.check.rule import Fix, Page, Problem, Rule, bad, describe, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import CompiledCall
from stoker.doctor.check.source.values import Compiled, Seq, Tensor, Value


class NoInputSignature(Rule):
    """tf.functions whose inputs change shape from call to call."""

    kind = "no-input-signature"
    severity = "warning"
    page = Page(
        what="Reports a tf.function without `input_signature` or `reduce_retracing` that is called in a loop with "
        "tensors whose shape changes: out of `padded_batch` or `bucket_by_sequence_length`, or cut to a changing "
        "length.",
        why="Each new shape is traced as a new graph. Sequences of a hundred different lengths mean a hundred traces.",
        fix_safety="Adding `reduce_retracing=True` is unsafe: the same operations run, in a graph that leaves the "
        "changing dimensions open, but code that reads a dimension in Python (`x.shape[1]`) gets None there.",
        known_problems="A pipeline that pads to one fixed length is recognised by its `padded_shapes`.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            dataset = tf.data.Dataset.from_generator(sentences, tf.int32).padded_batch(32).prefetch(1)

            @tf.function  #!
            def train_step(tokens):
                return tf.reduce_mean(model(tokens))

            for tokens in dataset:
                train_step(tokens)
            """,
            fixed="""
            import tensorflow as tf

            dataset = tf.data.Dataset.from_generator(sentences, tf.int32).padded_batch(32).prefetch(1)

            @tf.function(reduce_retracing=True)
            def train_step(tokens):
                return tf.reduce_mean(model(tokens))

            for tokens in dataset:
                train_step(tokens)
            """,
        ),
        bad(
            """
            import tensorflow as tf

            @tf.function(jit_compile=False)  #!
            def next_logits(tokens):
                return model(tokens)[:, -1]

            tokens = tf.zeros([1, 512], tf.int32)
            for length in range(1, 512):
                logits = next_logits(tokens[:, :length])
            """,
            fixed="""
            import tensorflow as tf

            @tf.function(jit_compile=False, reduce_retracing=True)
            def next_logits(tokens):
                return model(tokens)[:, -1]

            tokens = tf.zeros([1, 512], tf.int32)
            for length in range(1, 512):
                logits = next_logits(tokens[:, :length])
            """,
        ),
        bad(
            """
            import tensorflow as tf

            def step(x, y):
                return loss_fn(y, model(x))

            step = tf.function(step)  #!
            ds = tf.data.Dataset.from_tensor_slices((x, y)).bucket_by_sequence_length(length, [10, 20], [8, 8, 8])
            for x, y in ds.prefetch(2):
                step(x, y)
            """
        ),
        bad(
            """
            import tensorflow as tf

            class Trainer:
                @tf.function  #!
                def step(self, batch):
                    return tf.reduce_mean(self.model(batch))

                def fit(self, files):
                    ds = tf.data.TextLineDataset(files).map(encode, num_parallel_calls=4).padded_batch(16)
                    for batch in ds.prefetch(1):
                        self.step(batch)
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            dataset = tf.data.Dataset.from_generator(sentences, tf.int32).padded_batch(32).prefetch(1)

            @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
            def train_step(tokens):
                return tf.reduce_mean(model(tokens))

            for tokens in dataset:
                train_step(tokens)
            """
        ),
        good(
            """
            import tensorflow as tf

            dataset = tf.data.Dataset.from_tensor_slices(x).batch(32, drop_remainder=True).prefetch(1)

            @tf.function
            def train_step(tokens):
                return tf.reduce_mean(model(tokens))

            for tokens in dataset:
                train_step(tokens)
            """
        ),
        good(
            """
            import tensorflow as tf

            @tf.function(reduce_retracing=True)
            def next_logits(tokens):
                return model(tokens)[:, -1]

            for length in range(1, 512):
                logits = next_logits(tokens[:, :length])
            """
        ),
        good(
            """
            import tensorflow as tf

            ds = tf.data.Dataset.from_generator(rows, tf.int32).padded_batch(8, padded_shapes=[128]).prefetch(1)

            @tf.function
            def train_step(tokens):
                return tf.reduce_mean(model(tokens))

            for tokens in ds:
                train_step(tokens)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Calls in a loop with tensors of changing shape."""
        for fact in analysis.facts:
            if not isinstance(fact, CompiledCall) or not fact.at.repeated:
                continue
            if fact.compiled.signature or fact.compiled.relaxed:
                continue
            for node, value in fact.arguments:
                if _changes_shape(value):
                    message = (
                        f"{describe(node)} changes its shape from call to call: each shape is traced anew"
                    )
                    how = fact.compiled
                    yield self.problem_at(how.module, how.node, message, _relaxed(how), fact.at)
                    break


def _changes_shape(value: Value) -> bool:
    if isinstance(value, Seq) and value.items is not None:
        return any(_changes_shape(item) for item in value.items)
    return isinstance(value, Tensor) and value.ragged


def _relaxed(how: Compiled) -> Fix | None:
    if isinstance(how.node, ast.Call):
        edit = add_argument(how.module, how.node, "reduce_retracing=True")
        return None if edit is None else Fix("unsafe", (edit,), "Let the changing dimensions be open")
    return Fix(
        "unsafe", (insert_after(how.module, how.node, "(reduce_retracing=True)"),), "Leave the shape open"
    )


RULE = NoInputSignature()
