import tensorflow as tf

def rows():
    for path in paths:
        yield read(path)

dataset = tf.data.Dataset.from_generator(rows, output_types=tf.float32)  #!
dataset = dataset.batch(32).prefetch(2)
