import tensorflow as tf

def read(path):
    return load(path.numpy().decode())

dataset = tf.data.Dataset.list_files("*.png")
dataset = dataset.map(lambda p: tf.py_function(read, [p], tf.float32), num_parallel_calls=4)
