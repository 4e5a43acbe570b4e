dataset = tf.data.TFRecordDataset(files).shard(size, rank).shuffle(10_000).batch(32)
