"""A list keeps the output of every step: memory grows by a mebibyte a step.

`stoker run examples/memory/growing_list.py` names the line, on a CPU too. The repair, `growing_list_fixed.py`, keeps a
running sum.
"""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)

inputs = tf.random.normal([256, 1024])
model = tf.keras.Sequential([tf.keras.layers.Dense(1024, activation="relu") for _ in range(8)])
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        out = model(x, training=True)
        loss = tf.reduce_mean(tf.square(out - x))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return out


def train(steps):
    outputs = []
    for _ in range(steps):
        outputs.append(train_step(inputs))  # <-- the leak
    return tf.add_n([tf.reduce_mean(out) for out in outputs]) / len(outputs)


print(f"mean output {float(train(60)):.4f}")
