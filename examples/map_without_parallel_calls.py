"""Augmentation runs on one thread, and only when the step asks for the next batch.

TensorFlow makes pure maps parallel by itself, but not a map that draws random numbers, and not with autotuning off.
The repair passes `num_parallel_calls`: other threads augment the images while the step runs.
"""

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)

images = tf.random.uniform([512, 96, 96, 3])
labels = tf.cast(images[:, 0, 0, 0] * 10, tf.int32)


def augment(images, labels):
    images = tf.image.random_saturation(images, 0.8, 1.2)
    images = tf.image.random_contrast(images, 0.8, 1.2)
    return images, labels


options = tf.data.Options()
options.autotune.enabled = False
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).with_options(options)
dataset = dataset.repeat(14).batch(256)
dataset = dataset.map(augment)  # <-- the stall

model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(64, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.01)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for x, y in dataset:
    loss = train_step(x, y)

print(f"loss {float(loss):.1f}")
