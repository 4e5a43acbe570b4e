import tensorflow as tf

dataset = (
    tf.data.Dataset.from_tensor_slices(x)
    .map(lambda v: (v - 127.5) / 127.5)  #!
    .batch(64)
)
