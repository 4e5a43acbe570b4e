import tensorflow as tf

ds = tf.data.TFRecordDataset(files).batch(1000).map(parse_many, num_parallel_calls=4)
ds = ds.unbatch().shuffle(5000).batch(32)
