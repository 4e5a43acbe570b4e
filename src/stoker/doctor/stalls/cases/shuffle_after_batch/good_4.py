import random
import tensorflow as tf

files = tf.io.gfile.glob("*.tfrecord")
random.shuffle(files)
ds = tf.data.TFRecordDataset(files).batch(32)
