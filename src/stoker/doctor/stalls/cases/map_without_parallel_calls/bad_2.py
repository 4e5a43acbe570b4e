import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
train = (
    tf.data.TFRecordDataset(files)
    .shuffle(1024)
    .map(lambda r: tf.io.parse_single_example(r, features))  #!
    .batch(64)
    .prefetch(AUTOTUNE)
)
