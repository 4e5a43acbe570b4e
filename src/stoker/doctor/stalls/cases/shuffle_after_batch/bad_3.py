import tensorflow as tf

ds = (
    tf.data.TextLineDataset("corpus.txt")
    .map(encode, num_parallel_calls=4)
    .padded_batch(64)
    .cache()
    .shuffle(500)  #!
    .prefetch(1)
)
