import tensorflow as tf

def load(path):
    return tf.io.decode_raw(tf.io.read_file(path), tf.float32)

dataset = tf.data.Dataset.list_files("*.bin").map(load, num_parallel_calls=8).batch(32).prefetch(2)
