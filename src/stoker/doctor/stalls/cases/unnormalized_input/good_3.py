import tensorflow as tf

(x, y), _ = tf.keras.datasets.mnist.load_data()
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
ds = ds.map(lambda a, b: (tf.cast(a, tf.float32) / 255.0, b), num_parallel_calls=4).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.fit(ds)
