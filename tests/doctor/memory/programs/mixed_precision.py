import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.default_rng(0).random((512, 32, 32, 3), dtype="float32")
y = np.zeros(512, "int64")
model = keras.Sequential(
    [
        keras.layers.Conv2D(32, 3, activation="relu", padding="same"),
        keras.layers.BatchNormalization(),
        keras.layers.Flatten(),
        keras.layers.Dense(10, dtype="float32"),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=64, epochs=5, verbose=0)
