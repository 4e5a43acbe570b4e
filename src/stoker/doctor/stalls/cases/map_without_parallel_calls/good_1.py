import tensorflow as tf

dataset = tf.data.Dataset.list_files("train/*.jpg")
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)
