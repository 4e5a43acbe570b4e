import tensorflow as tf

dataset = dataset.map(lambda x: tf.image.random_flip_left_right(x), num_parallel_calls=4).batch(32)
