"""Before and after for each kind: the rules' own cases, and a few for the kinds only a run can find."""

from __future__ import annotations

import difflib
import textwrap
from typing import Any

from stoker.doctor.check.registry import all_rules

# Kinds without a static rule: why it costs, before, after.
_MEASURED_ONLY = {
    "retrace-shape": (
        "Every new shape is a new graph: tracing and optimising it takes longer than many steps.",
        """
        dataset = sentences.padded_batch(32)

        @tf.function
        def train_step(tokens):
            ...
        """,
        """
        dataset = sentences.padded_batch(32, padded_shapes=[128])

        @tf.function(input_signature=[tf.TensorSpec([None, 128], tf.int32)])
        def train_step(tokens):
            ...
        """,
    ),
    "input-starved": (
        "The step cannot start before its data is there, and the device idles as long as it is not.",
        """
        dataset = files.map(decode).batch(32)
        """,
        """
        dataset = files.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
        dataset = dataset.cache().batch(32).prefetch(tf.data.AUTOTUNE)
        """,
    ),
    "launch-bound": (
        "Each call costs the same on the host however little it computes: many small ones cost more than they do.",
        """
        for batch in dataset:
            train_step(batch)
        """,
        """
        @tf.function
        def train_steps(iterator, count):
            for _ in tf.range(count):
                train_step(next(iterator))

        train_steps(iter(dataset), tf.constant(100))
        """,
    ),
    "iterator-teardown": (
        "Each `for` over a dataset makes an iterator, and deleting it waits until tf.data's autotuner has stopped.",
        """
        for epoch in range(100):
            for batch in dataset:
                train_step(batch)
        """,
        """
        for batch in dataset.repeat(100):
            train_step(batch)
        """,
    ),
    "straggler": (
        "An exchange ends when the last worker has come: what one does longer, all others wait for.",
        """
        for step, batch in enumerate(dataset):
            train_step(batch)
            if rank == 0:
                write_summaries(step)
        """,
        """
        for step, batch in enumerate(dataset):
            train_step(batch)
            if rank == 0 and step % 100 == 0:
                write_summaries(step)
        """,
    ),
    "many-small-collectives": (
        "Every exchange has a latency beside its bytes, and the step waits for each of them.",
        """
        gradients = [context.all_reduce("SUM", gradient) for gradient in gradients]
        """,
        """
        gradients = context.all_reduce("SUM", gradients)
        """,
    ),
    "unsharded-input": (
        "Every worker reads, decodes and trains on the same rows: the work of one, done by all.",
        """
        dataset = tf.data.TFRecordDataset(files).shuffle(10_000).batch(32)
        """,
        """
        dataset = tf.data.TFRecordDataset(files).shard(size, rank).shuffle(10_000).batch(32)
        """,
    ),
    "checkpoint-in-loop": (
        "Nothing else runs while the weights are written, and most of those files are never read.",
        """
        for step, batch in enumerate(dataset):
            train_step(batch)
            manager.save()
        """,
        """
        for step, batch in enumerate(dataset):
            train_step(batch)
            if step % 1000 == 0:
                manager.save()
        """,
    ),
    "no-mixed-precision": (
        "Half precision runs several times faster on such a device, and moves half the bytes.",
        """
        model = build_model()
        """,
        """
        keras.mixed_precision.set_global_policy("mixed_float16")
        model = build_model()
        """,
    ),
}


def examples(kinds: set[str]) -> dict[str, dict[str, Any]]:
    """For each kind that has one: `why`, and the lines `before` and `after`, each with whether it differs."""
    found = {}
    for rule in all_rules():
        if rule.kind in kinds:
            found[rule.kind] = _example(rule.page.why, rule.bad[0].code, rule.good[0].code)
    for kind in kinds & _MEASURED_ONLY.keys():
        why, before, after = _MEASURED_ONLY[kind]
        found[kind] = _example(why, textwrap.dedent(before), textwrap.dedent(after))
    return found


def _example(why: str, before: str, after: str) -> dict[str, Any]:
    old, new = before.strip("\n").split("\n"), after.strip("\n").split("\n")
    gone, come = set(range(len(old))), set(range(len(new)))
    for block in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_matching_blocks():
        gone -= set(range(block.a, block.a + block.size))
        come -= set(range(block.b, block.b + block.size))
    return {
        "why": why,
        "before": [[text, index in gone] for index, text in enumerate(old)],
        "after": [[text, index in come] for index, text in enumerate(new)],
    }
