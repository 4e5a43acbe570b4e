import numpy as np
import tensorflow as tf

rows = np.memmap("rows.bin", dtype="float32", mode="r", shape=(10**8, 8))
order = tf.data.Dataset.range(10**8).shuffle(10**6).batch(256)
