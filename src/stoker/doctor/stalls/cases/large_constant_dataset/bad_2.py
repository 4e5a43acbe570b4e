import numpy as np
import tensorflow as tf

rows = np.memmap("rows.bin", dtype="float32", mode="r")
dataset = tf.data.Dataset.from_tensor_slices(rows)  #!
