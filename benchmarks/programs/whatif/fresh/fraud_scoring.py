"""Card payments are scored one after another by a tabular network, and the suspicious ones are counted per merchant."""

import sys
from collections import Counter

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])


def make_model():
    tf.keras.utils.set_random_seed(77)
    amount = tf.keras.Input((10,), name="numbers")
    merchant = tf.keras.Input((), dtype="int32", name="merchant")
    m = tf.keras.layers.Embedding(50, 8)(merchant)
    x = tf.keras.layers.Concatenate()([amount, m])
    for width in (128, 128, 64):
        x = tf.keras.layers.Dense(width, activation="relu")(x)
        x = tf.keras.layers.LayerNormalization()(x)
    return tf.keras.Model({"numbers": amount, "merchant": merchant}, tf.keras.layers.Dense(1, activation="sigmoid")(x))


def main():
    model = make_model()
    rng = np.random.default_rng(77)
    numbers = rng.lognormal(size=(200, 10)).astype("float32")
    merchants = rng.integers(0, 50, size=200).astype("int32")

    together = "predict-in-loop" in REPAIRED
    if together:
        scores = model.predict({"numbers": numbers, "merchant": merchants}, batch_size=200, verbose=0)[:, 0]
    flagged, total = Counter(), 0.0
    for step in range(len(numbers)):
        if together:
            score = scores[step]
        else:
            row = {"numbers": numbers[step : step + 1], "merchant": merchants[step : step + 1]}
            score = model.predict(row, verbose=0)[0, 0]  # stall: predict-in-loop
        total += float(score)
        if score > 0.6:
            flagged[int(merchants[step])] += 1
    print("mean score", round(total / len(numbers), 5), "worst merchants", flagged.most_common(3))


if __name__ == "__main__":
    main()
