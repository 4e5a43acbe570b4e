dataset = files.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache().batch(32).prefetch(tf.data.AUTOTUNE)
