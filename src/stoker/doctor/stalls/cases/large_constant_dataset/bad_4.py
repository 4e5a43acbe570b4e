import numpy as np
import tensorflow as tf

tokens = np.load("tokens.npy", mmap_mode="r")
labels = np.load("labels.npy")
dataset = tf.data.Dataset.from_tensor_slices((tokens, labels))  #!
