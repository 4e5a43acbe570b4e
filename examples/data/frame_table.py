"""A pandas frame. Polars frames, Arrow tables and Hugging Face datasets work the same way."""

import numpy as np
import pandas as pd

import stoker

frame = pd.DataFrame(
    {"x": np.linspace(0, 1, 1000), "colour": ["red", "green"] * 500, "y": np.arange(1000) % 3}
)
train, held_out = stoker.data.frame(frame, label="y", batch_size=50, shuffle=True, validation_split=0.2)
print(train.features)
print(train.rows, held_out.rows, train.features["colour"].vocabulary)
