"""Two replicas (on one CPU here) in float16. A batch overflows on the second one only: both skip the step.

python examples/trainer/replicas.py
"""

import keras
import numpy as np
import tensorflow as tf

import stoker

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

random = np.random.default_rng(0)
x = random.normal(size=(512, 8)).astype("float32")
y = x[:, :1] * 2
x[100, 0] = 1e6  # row 36 of the second batch: in the second replica's half

keras.config.set_dtype_policy("mixed_float16")
keras.utils.set_random_seed(1)
with strategy.scope():
    model = keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
    )
    optimizer = keras.optimizers.Adam(0.01)


def step(model, batch):
    x, y = batch
    return keras.losses.mean_squared_error(y, keras.ops.cast(model(x, training=True), "float32"))


trainer = stoker.Trainer(
    model, optimizer, step, clip=stoker.Clip(global_norm=1.0), loss_scale=stoker.LossScale(1024.0)
)
history = trainer.fit(x, y, batch_size=64, epochs=10, shuffle=False, verbose=0)
first, second = model.trainable_variables[0].value.values
print(f"loss {history.history['loss'][0]:.3f} -> {history.history['loss'][-1]:.3f}")
print(
    f"{optimizer.iterations.numpy()} updates in 80 steps; all finite: {bool(tf.reduce_all(tf.math.is_finite(first)))}"
)
print(f"the replicas' weights are equal: {(first.numpy() == second.numpy()).all()}")
