"""Mixed precision: float16 with a loss scale that adjusts itself, bfloat16 without one.

python examples/trainer/mixed_precision.py
"""

import keras
import numpy as np

import stoker

random = np.random.default_rng(0)
x = random.normal(size=(1024, 16)).astype("float32")
y = np.sin(x[:, :1] * 2).astype("float32")


def step(model, batch):
    x, y = batch
    return keras.losses.mean_squared_error(y, keras.ops.cast(model(x, training=True), "float32"))


for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential([keras.Input((16,)), layers.Dense(64, activation="tanh"), layers.Dense(1)])
    # The scale starts far too high on purpose: the first steps overflow and are skipped.
    scale = stoker.LossScale(initial=2.0**24, patience=200) if policy == "mixed_float16" else None
    trainer = stoker.Trainer(model, keras.optimizers.Adam(0.01), step, loss_scale=scale)
    history = trainer.fit(x, y, batch_size=64, epochs=20, verbose=0)
    scaler = trainer.update_state.parts["model"].update.scaler
    moved = f", the loss scale went from 2^24 to 2^{np.log2(float(scaler.scale)):.0f}" if scaler else ""
    updates = int(trainer.optimizers["model"].iterations)
    print(f"{policy:<15} loss {history.history['loss'][-1]:.4f} after {updates} updates of 320 steps{moved}")
keras.config.set_dtype_policy("float32")
