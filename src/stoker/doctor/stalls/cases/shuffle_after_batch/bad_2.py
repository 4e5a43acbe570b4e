import tensorflow as tf

train = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=4)
train = train.batch(BATCH)
train = train.shuffle(buffer_size=100)  #!
train = train.prefetch(tf.data.AUTOTUNE)
