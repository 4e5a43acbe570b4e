"""STK302: a dataset map runs on one thread."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import add_argument, autotune
from stoker.doctor.check.rule import Fix, Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Extended
from stoker.doctor.check.source.values import Func, Stage

_PARALLEL_MATTERS = ("map",)
# Syntax that only hands elements on.
_HANDING_ON = (
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Name,
    ast.Subscript,
    ast.Constant,
    ast.Load,
    ast.Starred,
    ast.Attribute,
    ast.Slice,
    ast.UnaryOp,
    ast.USub,
)


class MapWithoutParallelCalls(Rule):
    """`map` calls that leave `num_parallel_calls` out."""

    kind = "map-without-parallel-calls"
    severity = "warning"
    page = Page(
        what="Reports `dataset.map(f)` without `num_parallel_calls`, given by keyword or as the second argument. Maps "
        "that only pick or rearrange what they get are left alone, and so are maps inside `interleave`.",
        why="A map without it handles one element after the other on one thread, however many cores there are.",
        fix_safety="Unsafe: where the function draws random numbers or keeps state, another order of evaluation gives "
        "other values.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            def decode(path):
                return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path)), [224, 224])

            dataset = tf.data.Dataset.list_files("train/*.jpg")
            dataset = dataset.map(decode)  #!
            dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)
            """,
            fixed="""
            import tensorflow as tf

            def decode(path):
                return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path)), [224, 224])

            dataset = tf.data.Dataset.list_files("train/*.jpg")
            dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
            dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)
            """,
        ),
        bad(
            """
            import tensorflow as tf

            AUTOTUNE = tf.data.AUTOTUNE
            train = (
                tf.data.TFRecordDataset(files)
                .shuffle(1024)
                .map(lambda r: tf.io.parse_single_example(r, features))  #!
                .batch(64)
                .prefetch(AUTOTUNE)
            )
            """,
            fixed="""
            import tensorflow as tf

            AUTOTUNE = tf.data.AUTOTUNE
            train = (
                tf.data.TFRecordDataset(files)
                .shuffle(1024)
                .map(lambda r: tf.io.parse_single_example(r, features), num_parallel_calls=AUTOTUNE)
                .batch(64)
                .prefetch(AUTOTUNE)
            )
            """,
        ),
        bad(
            """
            import tensorflow as tf

            def prepare(ds, augment=False):
                ds = ds.map(rescale)  #!
                if augment:
                    ds = ds.map(flip, num_parallel_calls=4)
                return ds.prefetch(2)

            train = prepare(tf.data.Dataset.from_tensor_slices(images), augment=True)
            """
        ),
        bad(
            """
            import tensorflow_datasets as tfds

            (train, test), info = tfds.load(
                "cifar10", split=["train", "test"], as_supervised=True, with_info=True
            )
            train = train.map(normalize).cache().batch(128)  #!
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            dataset = tf.data.Dataset.list_files("train/*.jpg")
            dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
            dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)
            """
        ),
        good(
            """
            import tensorflow as tf

            dataset = tf.data.TFRecordDataset(files).map(parse, tf.data.AUTOTUNE).batch(8)
            """
        ),
        good(
            """
            import pandas as pd
            import tensorflow as tf

            frame = pd.read_csv("rows.csv")
            frame["label"] = frame["label"].map(names)
            dataset = tf.data.Dataset.from_tensor_slices(dict(frame)).map(lambda row: row["x"])
            """
        ),
        good(
            """
            import tensorflow as tf

            files = tf.data.Dataset.list_files("*.csv")
            rows = files.interleave(
                lambda f: tf.data.TextLineDataset(f).skip(1).map(tf.strings.strip),
                cycle_length=8,
                num_parallel_calls=tf.data.AUTOTUNE,
            )
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Each map stage that is neither parallel nor trivial."""
        inner = {id(stage.node) for stage in _inner_stages(analysis)}
        for fact in analysis.facts:
            if not isinstance(fact, Extended):
                continue
            stage = fact.dataset.stages[-1] if fact.dataset.stages else None
            if (
                stage is None
                or stage.name not in _PARALLEL_MATTERS
                or stage.parallel
                or id(stage.node) in inner
            ):
                continue
            if stage.node is fact.at.node and not _only_hands_on(stage) and not _in_mapped_function(fact):
                yield self.problem(fact.at, "this map runs on one thread", _fix(stage))


def _inner_stages(analysis: Analysis) -> Iterator[Stage]:
    for fact in analysis.facts:
        if isinstance(fact, Extended) and fact.dataset.inner:
            yield from fact.dataset.stages


def _in_mapped_function(fact: Extended) -> bool:
    # A pipeline made inside a graph is one inside `interleave` or `flat_map`.
    return fact.at.graph


def _only_hands_on(stage: Stage) -> bool:
    function = stage.function
    if not isinstance(function, Func) or not isinstance(function.node, ast.Lambda):
        return False
    return all(isinstance(node, _HANDING_ON) for node in ast.walk(function.node.body))


def _fix(stage: Stage) -> Fix | None:
    name = autotune(stage.module, stage.node)
    edit = None if name is None else add_argument(stage.module, stage.node, f"num_parallel_calls={name}")
    return None if edit is None else Fix("unsafe", (edit,), "Run the map in parallel")


RULE = MapWithoutParallelCalls()
