"""The update of large variables, compiled by itself."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.train.execution import fused_update
from stoker.train.execution.fused_update import refusal
from stoker.train.execution.kept import traces_of
from tests.train import plain

pytestmark = pytest.mark.tensorflow

WORDS, WIDTH = 5000, 16


def model(optimizer: Any) -> Any:
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int64")
    x = keras.layers.Embedding(WORDS, WIDTH, mask_zero=True)(ids)
    # Smooth: a ReLU may be turned by a rounding.
    x = keras.layers.Dense(WORDS, activation="tanh")(keras.layers.GlobalAveragePooling1D()(x))
    made = keras.Model(ids, keras.layers.Dense(3, activation="softmax")(x))
    made.compile(optimizer, "sparse_categorical_crossentropy")
    return made


def texts() -> Any:
    """Batches of different lengths, in which some words come again and again."""
    draw = np.random.default_rng(0)

    def batches() -> Any:
        for length in (5, 9, 7, 5):
            yield draw.integers(1, 20, (4, length)), draw.integers(0, 3, 4)

    given = list(batches())
    spec = (tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None,), tf.int64))
    return tf.data.Dataset.from_generator(lambda: iter(given), output_signature=spec).apply(
        tf.data.experimental.assert_cardinality(len(given))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.Adam(1e-2, amsgrad=True, global_clipnorm=1.0),
        lambda: keras.optimizers.AdamW(1e-2, use_ema=True),
        lambda: keras.optimizers.RMSprop(1e-2, momentum=0.9),
        lambda: keras.optimizers.Adamax(1e-2),
        lambda: keras.optimizers.Lion(1e-3),
    ],
)
def test_it_learns_what_the_plain_one_learns(optimizer: Any) -> None:
    plain, fused = model(optimizer()), model(optimizer())
    first = stoker.fit(plain, texts(), epochs=3, plan="none", verbose=0).history["loss"]
    second = stoker.fit(fused, texts(), epochs=3, plan="update", verbose=0).history["loss"]
    assert first == pytest.approx(second, rel=1e-4)
    assert "_backend_update_step" not in vars(fused.optimizer)
    for one, other in zip(plain.weights, fused.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    assert int(fused.optimizer.iterations) == 12


@pytest.mark.parametrize(("plan", "compiled"), [("none", 0), ("update", 1)])
def test_one_function_of_the_step_is_compiled(plan: str, compiled: int) -> None:
    learner = model("adam")
    stoker.fit(learner, texts(), epochs=1, plan=plan, verbose=0)
    (entry,) = traces_of(learner)._loops.values()
    made = entry.loop.build().graph.as_graph_def().library.function
    assert sum(one.attr["_XlaMustCompile"].b for one in made) == compiled


def test_it_is_worth_it_for_large_variables_and_long_jobs_only() -> None:
    learner = model("adam")
    assert refusal(learner, 1_000_000) is None
    assert "too few" in str(refusal(learner, 1000))
    assert "SGD" in str(refusal(model("sgd"), 1_000_000))
    # Of a table of embeddings the gradients come as some rows, which are left to Keras.
    table = keras.Sequential(
        [keras.Input((3,)), keras.layers.Embedding(WORDS, WIDTH), keras.layers.Flatten()]
    )
    table.compile("rmsprop", "mse")
    assert "0 weights" in str(refusal(table, 1_000_000))


def test_the_plan_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stoker.fit(model("rmsprop"), texts(), epochs=1, verbose=0).plan.jit == "none"
    monkeypatch.setattr(fused_update, "_LEAST_WORK", 4 * WORDS * WIDTH)
    plan = stoker.fit(model("rmsprop"), texts(), epochs=1, verbose=0).plan
    assert plan.jit == "update"
    assert "XLA over the update (" in plan.line()
    # Of Adam there is a kernel for all of it.
    assert stoker.fit(model("adam"), texts(), epochs=1, verbose=0).plan.jit == "none"


def test_a_loop_of_ones_own_has_no_such_update() -> None:
    learner = model("adam")
    trainer = stoker.Trainer(learner, learner.optimizer, plain.squared)
    with pytest.raises(ArgumentError, match=r"jit='update' is for stoker\.fit"):
        trainer.fit(texts(), epochs=1, plan="update", verbose=0)
