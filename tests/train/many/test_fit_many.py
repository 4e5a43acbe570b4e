"""`stoker.fit_many`: each member ends with the bits of its own `stoker.fit`, however it was trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.train.fit_many import ManyResult

SEED = 5


def rows(count: int = 100, outputs: int = 1) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    x = random.standard_normal((count, 6)).astype("float32")
    y = (x[:, :outputs] * 2 + random.standard_normal((count, outputs)) / 10).astype("float32")
    return x, y


def make(
    rate: float = 1e-2,
    dropout: float = 0.2,
    decay: float = 0.01,
    seed: int | None = None,
    width: int = 8,
    activation: str = "relu",
) -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(width, activation=activation),
            keras.layers.Dropout(dropout, seed=seed),
            keras.layers.Dense(4, activation="tanh"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.AdamW(rate, weight_decay=decay), "mse", metrics=["mae"])
    return model


def classify(smoothing: float = 0.1, seed: int = 0, momentum: float = 0.9) -> keras.Model:
    out = inner = keras.Input((6,))
    for _ in range(2):
        inner = keras.layers.Dense(8, activation="relu", kernel_regularizer="l2")(inner)
        inner = keras.layers.BatchNormalization()(inner)
    model = keras.Model(out, keras.layers.Dense(3, activation="softmax")(inner))
    model.compile(
        keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 40), momentum=momentum),
        keras.losses.CategoricalCrossentropy(label_smoothing=smoothing),
        metrics=["accuracy"],
    )
    return model


class Masked(keras.layers.Layer):
    """A width by mask: the units beyond it are zero."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mask = (np.arange(8) < width).astype("float32")

    def call(self, inputs: Any) -> Any:
        return inputs * self.mask


def narrow(width: int = 8, seed: int = 0) -> keras.Model:
    layers = [
        keras.Input((6,)),
        keras.layers.Dense(8, activation="relu"),
        Masked(width),
        keras.layers.Dense(1),
    ]
    model = keras.Sequential(layers)
    model.compile("rmsprop", "mse")
    return model


def recur(rate: float = 1e-2, seed: int = 0) -> keras.Model:
    """Its step has a loop over variables, so it cannot be stacked."""
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Reshape((3, 2)), keras.layers.LSTM(4), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(rate), "mse")
    return model


class OwnStep(keras.Model):
    """A train_step of its own, with a variable of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.seen = tf.Variable(0, trainable=False)

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs)

    def train_step(self, data: Any) -> Any:
        self.seen.assign_add(1)
        return {**super().train_step(data), "twice": 2.0}


def own_step(rate: float = 1e-2, seed: int = 0) -> keras.Model:
    model = OwnStep()
    model.compile(keras.optimizers.Adam(rate), "mse")
    return model


def one_hot(count: int = 96) -> tuple[Any, Any]:
    x, _ = rows(count)
    return x, keras.utils.to_categorical(np.argmax(x[:, :3], 1), 3)


CASES: dict[str, tuple[Callable[..., keras.Model], list[dict[str, Any]], tuple[Any, Any]]] = {
    "rates": (make, [{"rate": 0.01 * n, "seed": n} for n in range(1, 4)], rows()),
    "dropout and decay": (
        make,
        [{"dropout": 0.1 * n, "decay": 0.01 * n, "seed": 7} for n in range(1, 4)],
        rows(96),
    ),
    "two structures": (make, [{"dropout": d, "seed": n} for n, d in enumerate([0.0, 0.5, 0.0, 0.3])], rows()),
    "smoothing": (classify, [{"smoothing": 0.1 * n, "seed": n} for n in range(1, 4)], one_hot()),
    "widths": (narrow, [{"width": n, "seed": n} for n in (2, 5, 8)], rows()),
    "a recurrent layer": (recur, [{"rate": 0.01 * n, "seed": n} for n in (1, 2)], rows(64)),
    "a step of its own": (own_step, [{"rate": 0.01 * n, "seed": n} for n in (1, 2, 3)], rows(64)),
    "one member": (make, [{"seed": 1}], rows(64)),
}


def fit_alone(
    make_model: Callable[..., keras.Model], config: dict[str, Any], *data: Any, **how: Any
) -> keras.Model:
    keras.utils.set_random_seed(config["seed"])
    model = make_model(**config)
    tf.random.set_seed(SEED)
    stoker.fit(model, *data, **{"verbose": 0, **how})
    return model


def fit_together(
    make_model: Callable[..., keras.Model], configs: list[Any], *data: Any, **how: Any
) -> ManyResult:
    keras.utils.set_random_seed(SEED)
    return stoker.fit_many(make_model, configs, *data, **{"verbose": 0, **how})


def values(model: keras.Model) -> list[Any]:
    return [
        np.asarray(one) for one in [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    ]


def assert_same(member: Any, alone: keras.Model) -> None:
    assert member.history.history == alone.history.history
    for one, other in zip(values(member.model), values(alone), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_program_in_the_docs_runs() -> None:
    page = (Path(stoker.__file__).parents[2] / "docs" / "many.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(program, "docs/many.md", "exec"), names)
    assert len(names["result"]) == 4


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_each_member_has_the_bits_of_its_own_fit(case: str) -> None:
    make_model, configs, data = CASES[case]
    how: dict[str, Any] = {"epochs": 3, "batch_size": 16, "validation_split": 0.25}
    result = fit_together(make_model, configs, *data, **how)
    for member, config in zip(result, configs, strict=True):
        assert member.config == config
        assert_same(member, fit_alone(make_model, config, *data, **how))


def test_gelu_is_within_a_millionth() -> None:
    """TensorFlow fuses it with the product before it where a member trains alone, and rounds otherwise."""
    configs = [{"activation": "gelu", "rate": 0.01 * n, "seed": n} for n in (1, 2)]
    result = fit_together(make, configs, *rows(), epochs=2)
    for member, config in zip(result, configs, strict=True):
        alone = fit_alone(make, config, *rows(), epochs=2)
        for one, other in zip(values(member.model), values(alone), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_streamed_data_gives_the_same_bits() -> None:
    x, y = rows()

    def data() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices((x, y)).batch(16)

    configs = [{"rate": 0.01 * n, "seed": n} for n in (1, 2)]
    result = fit_together(make, configs, data(), epochs=2)
    for member, config in zip(result, configs, strict=True):
        assert_same(member, fit_alone(make, config, data(), epochs=2))


def stop_early(**how: Any) -> list[keras.callbacks.Callback]:
    return [keras.callbacks.EarlyStopping(patience=1, min_delta=0.3, **how)]


@pytest.mark.slow
@pytest.mark.parametrize("restore", [False, True])
def test_members_stop_by_themselves(restore: bool) -> None:
    configs = [{"rate": rate, "seed": 1} for rate in (1e-9, 1e-2, 3e-2, 1e-7, 1e-8)]
    how: dict[str, Any] = {"epochs": 12, "batch_size": 16, "validation_split": 0.25}
    result = fit_together(make, configs, *rows(), callbacks=stop_early(restore_best_weights=restore), **how)
    lengths = [len(one.history.epoch) for one in result]
    assert min(lengths) == 2
    assert max(lengths) > 3
    for member, config in zip(result, configs, strict=True):
        assert_same(
            member,
            fit_alone(make, config, *rows(), callbacks=stop_early(restore_best_weights=restore), **how),
        )


@pytest.mark.slow
def test_a_callback_may_change_one_member() -> None:
    def callbacks(config: Any) -> list[keras.callbacks.Callback]:
        return [
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * (0.5 if config["seed"] else 1.0))
        ]

    configs = [{"rate": 0.01, "seed": n} for n in range(3)]
    result = fit_together(make, configs, *rows(), epochs=3, callbacks=callbacks)
    for member, config in zip(result, configs, strict=True):
        assert_same(member, fit_alone(make, config, *rows(), epochs=3, callbacks=callbacks(config)))


class Crash(keras.callbacks.Callback):
    """Ends the process, as it were, in the middle of an epoch."""

    every_batch = True

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("crashed")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["rates", "two structures", "a recurrent layer"])
def test_all_members_go_on_after_a_crash(case: str, tmp_path: Path) -> None:
    make_model, configs, data = CASES[case]
    configs = [{**configs[0], "rate": 1e-9}, *configs[1:]]
    how: dict[str, Any] = {"epochs": 6, "batch_size": 16, "validation_split": 0.25}

    def stop(config: Any) -> list[keras.callbacks.Callback]:
        return stop_early() if config is configs[0] else []

    def crash(config: Any) -> list[keras.callbacks.Callback]:
        return [Crash(17)] if config is configs[-1] else stop(config)

    whole = fit_together(make_model, configs, *data, callbacks=stop, **how)
    saved = stoker.Checkpoint(tmp_path, every=3)
    with pytest.raises(RuntimeError, match="crashed"):
        fit_together(make_model, configs, *data, callbacks=crash, checkpoint=saved, **how)
    resumed = fit_together(make_model, configs, *data, callbacks=stop, checkpoint=saved, **how)
    assert len(resumed[0].history.epoch) == 2
    for one, other in zip(resumed, whole, strict=True):
        assert_same(one, other.model)
    again = fit_together(make_model, configs, *data, callbacks=stop, checkpoint=saved, **how)
    for one, other in zip(again, whole, strict=True):
        assert_same(one, other.model)


def test_the_best_member_is_the_one_with_the_best_score() -> None:
    configs = [{"rate": rate, "seed": 1} for rate in (1e-6, 3e-2, 1e-4)]
    result = fit_together(make, configs, *rows(), epochs=4, validation_split=0.25)
    assert (result.monitor, result.mode) == ("val_loss", "min")
    assert result.best is result[1]
    assert result.best.score == result[1].history.history["val_loss"][-1]
    assert result.models == [one.model for one in result]
    assert (
        fit_together(make, configs, *rows(), monitor="mae", mode="max").best is result.members[0]
        or len(result) == 3
    )


def test_the_random_state_of_the_program_stays_its_own() -> None:
    np.random.seed(11)
    expected = np.random.random()
    np.random.seed(11)
    tf.random.set_seed(12)
    stoker.fit_many(make, [{"seed": 1}, {"seed": 2}], *rows(), verbose=0, shuffle=False)
    assert np.random.random() == expected


def test_xla_trains_all_members_if_asked() -> None:
    configs = [{"dropout": 0.0, "rate": 0.01 * n, "seed": n} for n in (1, 2)]
    plain = fit_together(make, configs, *rows(96), epochs=2, batch_size=16)
    compiled = fit_together(make, configs, *rows(96), epochs=2, batch_size=16, plan="resident, loop")
    assert (plain.plan.jit, compiled.plan.jit) == ("none", "loop")
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one.history.history["loss"], other.history.history["loss"], rtol=1e-4)


class Drawing(keras.layers.Layer):
    """Draws from the generator that all layers without a seed share."""

    def call(self, inputs: Any) -> Any:
        return inputs + keras.random.normal(keras.ops.shape(inputs))


class Hidden(keras.layers.Layer):
    """Draws numbers whose state TensorFlow keeps."""

    def call(self, inputs: Any) -> Any:
        return inputs + tf.random.normal(tf.shape(inputs))


def with_layer(layer: keras.layers.Layer) -> Callable[..., keras.Model]:
    def make_model(seed: int = 0) -> keras.Model:
        model = keras.Sequential([keras.Input((6,)), layer, keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        return model

    return make_model


def eager(seed: int = 0) -> keras.Model:
    model = make(seed=seed)
    model.compile("sgd", "mse", run_eagerly=True)
    return model


SHARED = keras.layers.Dense(6)


@pytest.mark.parametrize(
    ("make_model", "configs", "said"),
    [
        (make, [], "configs must be a list"),
        (make, [{"rate": 0.1}, 3], r"configs\[1\] must be a dict"),
        (make, [{"seed": -1}], "seed=-1 must be a whole number"),
        ("model", [{}], "make_model must be a function"),
        (lambda: "model", [{}], r"configs\[0\]: stoker.fit_many takes a keras.Model"),
        (lambda: keras.Sequential([keras.layers.Dense(1)]), [{}], "not compiled"),
        (eager, [{}], "run_eagerly=True"),
        (
            make,
            [{"width": 8}, {"width": 9}],
            r"configs\[1\] makes a different architecture from configs\[0\]: .*kernel",
        ),
        (with_layer(Drawing()), [{}, {}], "a keras.random.SeedGenerator"),
        (with_layer(Hidden()), [{}, {}], "RandomStandardNormal"),
        (with_layer(SHARED), [{}, {}], "share the variable"),
    ],
)
def test_what_cannot_be_trained_together_is_refused(make_model: Any, configs: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        stoker.fit_many(make_model, configs, *rows(), verbose=0)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"callbacks": [keras.callbacks.ModelCheckpoint("best.keras")]}, "would write to the same place"),
        ({"callbacks": ["stop"]}, "objects of keras.callbacks.Callback"),
        ({"mode": "most"}, "mode='most'"),
        ({"monitor": "accuracy"}, "monitor='accuracy' is not in the history"),
        ({"epochs": "two"}, "epochs"),
    ],
)
def test_wrong_arguments_are_refused(how: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        stoker.fit_many(make, [{"seed": 1}, {"seed": 2}], *rows(), verbose=0, **how)
