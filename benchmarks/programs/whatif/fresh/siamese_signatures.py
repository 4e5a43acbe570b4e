"""A siamese network learns with contrastive loss whether two short pen strokes were drawn by the same hand."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)

# 40 writers, 50 strokes each, 96 points with x and y
style = rng.normal(size=(40, 1, 96, 2))
strokes = (style + 0.7 * rng.normal(size=(40, 50, 96, 2))).reshape(2000, 96, 2)
writer = np.repeat(np.arange(40), 50)
STEPS, PAIRS = 300, 64
left = rng.integers(0, 2000, size=(STEPS, PAIRS))
same = rng.integers(0, 2, size=(STEPS, PAIRS)).astype(bool)
right = np.where(same, writer[left] * 50 + rng.integers(0, 50, size=left.shape), rng.integers(0, 2000, size=left.shape))
label = (writer[left] == writer[right]).astype("float32")

tower = tf.keras.Sequential(
    [
        tf.keras.layers.Conv1D(16, 5, strides=2, activation="relu"),
        tf.keras.layers.Conv1D(32, 5, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(16),
    ]
)
tower.build((None, 96, 2))
sgd = tf.keras.optimizers.SGD(0.05, momentum=0.9)


def learn(a, b, y):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        distance = tf.sqrt(tf.reduce_sum((tower(a) - tower(b)) ** 2, axis=1) + 1e-6)
        loss = tf.reduce_mean(y * distance**2 + (1 - y) * tf.maximum(1.0 - distance, 0.0) ** 2)
    gradients = tape.gradient(loss, tower.trainable_variables)
    sgd.apply_gradients(zip(gradients, tower.trainable_variables, strict=True))
    return loss


if "eager-train-step" in REPAIRED:
    learn = tf.function(learn)
if "numpy-feed-in-loop" in REPAIRED:
    bank = tf.constant(strokes, tf.float32)
    left_all, right_all, label_all = tf.constant(left), tf.constant(right), tf.constant(label)

for step in range(STEPS):
    if "numpy-feed-in-loop" in REPAIRED:
        a, b, y = tf.gather(bank, left_all[step]), tf.gather(bank, right_all[step]), label_all[step]
    else:
        rows = [[strokes[i].tolist() for i in side] for side in (left[step], right[step])]
        a, b = tf.convert_to_tensor(np.array(rows, "float32"))  # stall: numpy-feed-in-loop
        y = tf.convert_to_tensor(label[step])
    loss = learn(a, b, y)
    if (step + 1) % 100 == 0:
        print("pairs seen", (step + 1) * PAIRS, "loss", loss.numpy())
