"""Trains one model on the software GPU within limits of memory; prints as JSON what was chosen and what came of it."""

from __future__ import annotations

import gc
import json
from typing import Any

from stoker import software_gpu

DEVICE = "GPU:0"
MIB = 2**20
# The whole device, for "auto".
software_gpu.enable(memory="24MiB")

import keras  # noqa: E402 # the device comes first
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import stoker  # noqa: E402
from stoker.tf_internals.types import History, Model  # noqa: E402

ROWS, BATCH, WIDTH, DEPTH = 4500, 2000, 96, 14
X = np.random.default_rng(0).normal(size=(ROWS, 16)).astype("float32")
Y = X[:, :1] * X[:, 1:2]


def make() -> Model:
    keras.utils.set_random_seed(1)
    hidden = [keras.layers.Dense(WIDTH, activation="tanh") for _ in range(DEPTH)]
    model = keras.Sequential([keras.Input((16,)), *hidden, keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse", metrics=["mae"], jit_compile=False)
    return model


MODEL = make()
MODEL.optimizer.build(MODEL.trainable_variables)
START = [value.numpy() for value in (*MODEL.variables, *MODEL.optimizer.variables)]


def restart() -> None:
    """Put the one model back to its beginning: what was traced of it is used again."""
    for variable, value in zip((*MODEL.variables, *MODEL.optimizer.variables), START, strict=True):
        variable.assign(value)
    gc.collect()
    tf.config.experimental.reset_memory_stats(DEVICE)


def tell(history: History) -> dict[str, Any]:
    plan = history.plan
    return {
        "parts": plan.parts,
        "figures": dict(plan.figures),
        "reasons": list(plan.reasons),
        "peak": tf.config.experimental.get_memory_info(DEVICE)["peak"],
        "loss": history.history["loss"],
        "weights": [float(np.abs(one).sum()) for one in MODEL.get_weights()],
    }


def fit(x: Any = X, y: Any = Y, batch_size: int | None = BATCH, **options: Any) -> dict[str, Any]:
    restart()
    return tell(stoker.fit(MODEL, x, y, batch_size=batch_size, epochs=2, verbose=0, **options))


def refused(**options: Any) -> str:
    try:
        fit(**options)
    except (ValueError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def batches() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH).map(lambda x, y: (x, y)).prefetch(1)


def step(model: Model, batch: Any) -> Any:
    x, y = batch
    return tf.reduce_mean(tf.square(model(x, training=True) - y))


def own_step(memory: str) -> dict[str, Any]:
    restart()
    trainer = stoker.Trainer(MODEL, MODEL.optimizer, step, memory=memory)
    return tell(trainer.fit(X, Y, batch_size=BATCH, epochs=2, verbose=0))


def main() -> None:
    found: dict[str, Any] = {"tried": {str(parts): fit(plan={"parts": parts}) for parts in (1, 2, 3)}}
    found["roomy"] = fit(memory="22MiB")
    # Enough for three parts, not for two.
    limit = sum(found["tried"][parts]["peak"] for parts in "23") // 2
    found["limit"] = limit
    found["tight"] = fit(memory=limit)
    found["streamed"] = fit(batches(), None, None, memory=limit)
    found["own_step"] = own_step(f"{limit}B")
    found["auto"] = fit(batch_size=4000, memory="auto")
    found["nothing"] = refused(memory="1MiB")
    found["generator"] = refused(x=((X[:9], Y[:9]) for _ in range(3)), y=None, batch_size=None, memory="9MiB")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
