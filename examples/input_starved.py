"""The step is faster than its input: the pipeline decodes whole pages, but the model reads only their top rows.

The pipeline has all the threads it could use; there is simply too much work.
The repair decodes only the rows that the model needs, with `decode_and_crop_jpeg`.
"""

import tensorflow as tf

tf.keras.utils.set_random_seed(0)

HEIGHT, WIDTH, TOP = 1024, 768, 32

pixels = tf.cast(tf.random.uniform([8, HEIGHT, WIDTH, 1], maxval=256, dtype=tf.int32), tf.uint8)
pages = [tf.io.encode_jpeg(page) for page in pixels]


def letterhead(page):
    rows = tf.io.decode_jpeg(page)[:TOP]
    return tf.image.convert_image_dtype(rows, tf.float32)


dataset = tf.data.Dataset.from_tensor_slices(pages).repeat(120)
dataset = dataset.map(letterhead, num_parallel_calls=tf.data.AUTOTUNE)  # <-- the stall
dataset = dataset.batch(16).prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(512), tf.keras.layers.Dense(1)])
model.build([None, TOP, WIDTH, 1])
optimizer = tf.keras.optimizers.SGD(0.00001)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - 1.0))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


for x in dataset:
    loss = train_step(x)

print(f"loss {float(loss):.3f}")
