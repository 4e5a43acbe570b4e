import tensorflow as tf

def load(path):
    return tf.image.resize(tf.io.decode_png(tf.io.read_file(path)), [32, 32]) / 255.0

dataset = tf.data.Dataset.list_files("*.png").map(load, num_parallel_calls=8).batch(32)
