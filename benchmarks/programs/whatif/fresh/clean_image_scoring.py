"""A well-made inference job with nothing to repair: a compiled CNN embeds large batches from a prefetched dataset."""

import tensorflow as tf

tf.keras.utils.set_random_seed(4)
layers = tf.keras.layers


def residual(x, filters, stride):
    y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization()(y)
    return layers.ReLU()(y + layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x))


inputs = tf.keras.Input((32, 32, 3))
h = layers.Conv2D(16, 3, padding="same")(inputs)
for filters, stride in ((16, 1), (32, 2), (64, 2)):
    h = residual(h, filters, stride)
model = tf.keras.Model(inputs, layers.GlobalAveragePooling2D()(h))
pictures = tf.random.uniform([1024, 32, 32, 3], maxval=256, dtype=tf.int32, seed=4)
pictures = tf.cast(pictures, tf.uint8)


def prepare(batch):
    return tf.cast(batch, tf.float32) / 127.5 - 1.0


data = tf.data.Dataset.from_tensor_slices(pictures).repeat(16).batch(128)
data = data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


@tf.function
def embed(batch):
    return tf.math.l2_normalize(model(batch, training=False), axis=1)


vectors = []
for step, batch in enumerate(data):
    vectors.append(embed(batch))
    if step % 16 == 0:
        print("batch", step)
vectors = tf.concat(vectors, axis=0)
print(vectors.shape, "mean vector norm", float(tf.norm(tf.reduce_mean(vectors, axis=0))))
