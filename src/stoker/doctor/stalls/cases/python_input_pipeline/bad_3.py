import tensorflow as tf

dataset = dataset.map(
    lambda x, y: (tf.py_function(augment, [x], tf.float32), y),  #!
    num_parallel_calls=tf.data.AUTOTUNE,
)
