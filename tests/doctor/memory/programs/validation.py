import keras
import numpy as np

x = np.random.default_rng(0).random((512, 32, 32, 3), dtype="float32")
y = np.zeros(512, "int64")
model = keras.Sequential(
    [
        keras.layers.Conv2D(16, 3, padding="same"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=32, epochs=6, verbose=0, validation_data=(x, y), validation_batch_size=512)
