import keras
import numpy as np
from keras import layers


class Block(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.norm = layers.LayerNormalization()
        self.up = layers.Dense(4 * width, activation="gelu")
        self.down = layers.Dense(width)

    def call(self, x):
        x = self.norm(x + self.attention(x, x))
        return x + self.down(self.up(x))


inputs = keras.Input((64,), dtype="int32")
x = layers.Embedding(1000, 64)(inputs)
for _ in range(2):
    x = Block(64, 4)(x)
model = keras.Model(inputs, layers.Dense(1000)(x))
model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
ids = np.random.default_rng(0).integers(0, 1000, (256, 64))
model.fit(ids, ids, batch_size=32, epochs=5, verbose=0)
