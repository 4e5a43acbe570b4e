import tensorflow as tf

dataset = tf.data.TFRecordDataset(files).map(parse, tf.data.AUTOTUNE).batch(8)
