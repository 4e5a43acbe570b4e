import tensorflow as tf

files = tf.io.gfile.glob("images-*.tfrecord")
dataset = tf.data.TFRecordDataset(files, num_parallel_reads=8).batch(32)
