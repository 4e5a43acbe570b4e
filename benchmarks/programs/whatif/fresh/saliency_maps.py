"""Integrated-gradients saliency maps are computed for a stream of pictures shown to a small CNN."""

import sys

import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(23)
L = tf.keras.layers
cnn = tf.keras.Sequential(
    [
        tf.keras.Input((32, 32, 3)),
        L.Conv2D(12, 3, activation="relu"),
        L.MaxPooling2D(),
        L.Conv2D(24, 3, activation="relu"),
        L.BatchNormalization(),
        L.GlobalAveragePooling2D(),
        L.Dense(10),
    ]
)
pictures = tf.random.uniform([120, 32, 32, 3], seed=1)
ramp = tf.reshape(tf.linspace(1 / 8, 1.0, 8), [8, 1, 1, 1])


def integrated_gradients(picture):
    path = ramp * picture[None]
    with tf.GradientTape() as tape:
        tape.watch(path)
        logits = cnn(path, training=False)
        best = tf.reduce_max(logits, axis=1)
    return picture * tf.reduce_mean(tape.gradient(best, path), axis=0)


if "tf-function-in-loop" in REPAIRED:
    explain = tf.function(integrated_gradients)

brightest = []
for step in range(len(pictures)):
    if "tf-function-in-loop" not in REPAIRED:
        explain = tf.function(integrated_gradients)  # stall: tf-function-in-loop
    saliency = tf.reduce_sum(tf.abs(explain(pictures[step])), axis=-1)
    brightest.append(tf.argmax(tf.reshape(saliency, [-1])))
    if step % 40 == 0:
        print("picture", step, "total saliency", float(tf.reduce_sum(saliency)))
print("commonest pixel rows:", tf.math.bincount(tf.cast(tf.stack(brightest) // 32, tf.int32)).numpy().tolist())
