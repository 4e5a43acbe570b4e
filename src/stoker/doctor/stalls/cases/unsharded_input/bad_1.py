dataset = tf.data.TFRecordDataset(files).shuffle(10_000).batch(32)
