"""STK202: a tf.function is created inside the loop and traced every time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Fact, FunctionMade


class TfFunctionInLoop(Rule):
    """tf.functions that come into being again and again."""

    kind = "tf-function-in-loop"
    severity = "error"
    page = Page(
        what="Reports `@tf.function`, `tf.function(f)` and `keras.backend.function(...)` that run inside a loop, or in "
        "a function that a loop calls.",
        why="Each tf.function object has its own cache of graphs. A new object knows none, so it traces the Python "
        "code again at its first call: tens of milliseconds to seconds, every time round.",
        known_problems="A loop over models or folds that builds its own model needs a function for each; such loops "
        "are recognised by the model or optimizer they make. Functions kept in a cache of the program's own may be "
        "reported.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            for epoch in range(10):
                @tf.function  #!
                def train_step(x):
                    return model(x)

                for batch in dataset:
                    train_step(batch)
            """
        ),
        bad(
            """
            import tensorflow as tf

            def forward(x):
                return tf.matmul(x, weights)

            for batch in dataset:
                y = tf.function(forward)(batch)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            class Trainer:
                def run_step(self, batch):
                    @tf.function  #!
                    def step(b):
                        return tf.reduce_mean(self.model(b))
                    return step(batch)

                def train(self, dataset):
                    for batch in dataset:
                        self.run_step(batch)
            """
        ),
        bad(
            """
            from tensorflow.keras import backend as K

            for image in images:
                get_output = K.function([model.input], [model.layers[3].output])  #!
                activations.append(get_output([image])[0])
            """
        ),
        bad(
            """
            import tensorflow as tf

            def make_step(rate):
                return tf.function(lambda v: v * rate)  #!

            while not converged:
                rate = rate * 0.9
                value = make_step(rate)(value)
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x):
                return model(x)

            for epoch in range(10):
                for batch in dataset:
                    train_step(batch)
            """
        ),
        good(
            """
            import tensorflow as tf

            def make_step(model, optimizer):
                @tf.function
                def step(x):
                    return model(x)
                return step

            step = make_step(model, optimizer)
            for batch in dataset:
                step(batch)
            """
        ),
        good(
            """
            import tensorflow as tf

            for fold in range(5):
                model = tf.keras.Sequential([tf.keras.layers.Dense(1)])

                @tf.function
                def step(x):
                    return model(x)

                for batch in folds[fold]:
                    step(batch)
            """
        ),
        good(
            """
            import tensorflow as tf

            class Trainer:
                def __init__(self, model):
                    self.model = model
                    self.step = tf.function(self._step)

                def _step(self, x):
                    return self.model(x)

                def train(self, dataset):
                    for batch in dataset:
                        self.step(batch)
            """
        ),
        good(
            """
            import tensorflow as tf

            steps = {}
            for task, batch in stream:
                if task not in steps:
                    steps[task] = tf.function(make(task))
                loss = steps[task](batch)
                total = total + tf.reduce_mean(loss)
            """
        ),
        good(
            """
            import tensorflow as tf

            compiled = None
            for i, batch in enumerate(dataset):
                if i == 0:
                    compiled = tf.function(forward)
                compiled(batch)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Every tf.function made in a loop whose model lives longer than an iteration."""
        for fact in analysis.facts:
            made_anew = isinstance(fact, FunctionMade) and fact.at.repeated and not fact.rebuilt
            if made_anew and not fact.at.graph and not _is_kept(fact):
                yield self.problem(
                    fact.at, "a new tf.function is made each time round, and traced anew each time"
                )


def _is_kept(fact: Fact) -> bool:
    """Whether it goes into a dictionary, or is made only where there is none yet: a cache of the program's own."""
    module, node = fact.at.module, fact.at.node
    statement = module.enclosing(node, ast.stmt)
    if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Subscript) for t in statement.targets):
        return True
    guard = module.enclosing(node, ast.If, ast.FunctionDef, ast.For, ast.While)
    test = guard.test if isinstance(guard, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotIn, ast.Is))


RULE = TfFunctionInLoop()
