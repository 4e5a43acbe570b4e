"""Arrays in memory, with the orders, splits and shards of every other reader."""

import numpy as np

import stoker

x = {"image": np.zeros((600, 8, 8, 1), np.uint8), "age": np.arange(600)}
train, held_out = stoker.data.arrays(
    x, np.arange(600) % 2, batch_size=64, shuffle=True, validation_split=0.25
)
inputs, labels = next(iter(train))
print(train.rows, held_out.rows, inputs["image"].shape, labels.shape)
