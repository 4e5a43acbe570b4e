import tensorflow as tf

files = tf.data.Dataset.list_files("*.csv")
rows = files.interleave(
    lambda f: tf.data.TextLineDataset(f).skip(1).map(tf.strings.strip),
    cycle_length=8,
    num_parallel_calls=tf.data.AUTOTUNE,
)
