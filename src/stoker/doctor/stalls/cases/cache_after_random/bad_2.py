import tensorflow as tf

train = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=4)
train = train.shuffle(10000).cache().batch(64).prefetch(2)  #!
