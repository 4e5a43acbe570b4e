"""STK102: NumPy data is converted and copied at every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.check.edits import indentation, insert_line, replace_node
from stoker.check.rule import Fix, Page, Problem, Rule, bad, describe, good
from stoker.source.analysis import Analysis
from stoker.source.facts import CompiledCall, Feed
from stoker.source.module import Module
from stoker.source.names import dotted_name, last_name
from stoker.source.values import Array

_LOOPS = (ast.For, ast.While)


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
        fix_safety="Converting a loop-invariant array once, before the loop, is safe: the array must be a plain name "
        "that the loop neither assigns, changes nor hands to anything that could change it.",
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
                message = f"the ndarray {subject} {fact.how} at every step"
                yield self.problem(fact.at, message, hoisted(fact, analysis))
            elif isinstance(fact, CompiledCall):
                for node, value in fact.arguments:
                    if isinstance(value, Array):
                        message = (
                            f"the ndarray {describe(node)} is passed to a compiled function at every step"
                        )
                        yield self.problem(fact.at, message)
                        break


def hoisted(fact: Feed, analysis: Analysis) -> Fix | None:
    """Convert before the loop what the loop never changes."""
    module, call, name = fact.at.module, fact.at.node, fact.argument
    conversion = isinstance(call, ast.Call) and last_name(call.func) in ("convert_to_tensor", "constant")
    if not (conversion and isinstance(call, ast.Call) and isinstance(name, ast.Name)):
        return None
    others: list[ast.expr] = [*call.args[1:], *(k.value for k in call.keywords)]
    if not all(isinstance(node, (ast.Constant, ast.Attribute)) for node in others):
        return None
    loop = _outermost_invariant(module, call, name.id)
    new = f"{name.id}_tensor"
    if loop is None or _mentions(module.tree, new):
        return None
    # Two conversions of the same array would otherwise define the same name twice.
    if sum(_converts(node, name.id) for node in ast.walk(loop)) > 1:
        return None
    line = loop.lineno
    text = f"{indentation(module, line)}{new} = {module.segment(call)}"
    if "\n" in text or not _starts_line(module, loop):
        return None
    edits = (insert_line(module, line, text), replace_node(module, call, new))
    return Fix("safe", edits, f"Convert `{name.id}` once, before the loop")


def _starts_line(module: Module, loop: ast.For | ast.While) -> bool:
    return module.lines[loop.lineno - 1][: loop.col_offset].strip() == ""


def _converts(node: ast.AST, name: str) -> bool:
    named = (
        isinstance(node, ast.Call) and last_name(node.func) in ("convert_to_tensor", "constant") and node.args
    )
    return bool(named) and isinstance(node, ast.Call) and dotted_name(node.args[0]) == name


def _mentions(tree: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _outermost_invariant(module: Module, call: ast.Call, name: str) -> ast.For | ast.While | None:
    """The outermost loop, in the same function, that leaves the name as it is."""
    found: ast.For | ast.While | None = None
    node: ast.AST | None = module.parents.get(call)
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if isinstance(node, _LOOPS):
            if not _only_read(module, node, name):
                break
            found = node
        node = module.parents.get(node)
    return found


def _only_read(module: Module, loop: ast.AST, name: str) -> bool:
    for node in ast.walk(loop):
        if isinstance(node, ast.Name) and node.id == name:
            if not isinstance(node.ctx, ast.Load) or not _harmless(module, node):
                return False
        elif isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
    return True


def _harmless(module: Module, node: ast.Name) -> bool:
    """Whether this use can only read: a conversion, an element, a shape, a length."""
    parent = module.parents[node]
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load) and parent.value is node
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("shape", "dtype", "size", "ndim")
    if isinstance(parent, ast.Call):
        function = dotted_name(parent.func)
        return function == "len" or last_name(parent.func) in ("convert_to_tensor", "constant")
    return False


RULE = NumpyFeedInLoop()
