import numpy as np
import tensorflow as tf

weights = tf.Variable(np.random.randn(100, 10), dtype=tf.float64)  #!
