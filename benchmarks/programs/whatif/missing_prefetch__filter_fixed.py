"""The repair of missing_prefetch__filter.py: the next batch is made while the step runs."""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)

pictures = tf.cast(tf.random.uniform([64, 128, 128, 3], maxval=255, dtype=tf.int32), tf.uint8)
options = tf.data.Options()
options.autotune.enabled = False
dataset = tf.data.Dataset.from_tensor_slices(pictures).with_options(options).repeat(40)
dataset = dataset.filter(
    lambda picture: tf.math.reduce_std(tf.image.resize(picture, [48, 48], antialias=True)) > 1
)
dataset = dataset.batch(32).prefetch(4)

model = tf.keras.Sequential(
    [tf.keras.layers.Conv2D(16, 3, activation="relu"), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.SGD(0.0001)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(
            tf.square(model(tf.cast(x, tf.float32)[:, ::3, ::3] / 255, training=True) - 1.0)
        )
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for x in dataset:
    loss = train_step(x)

print(f"loss {float(loss):.3f}")
