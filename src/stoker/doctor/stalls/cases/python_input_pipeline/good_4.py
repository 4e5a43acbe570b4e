import numpy as np
import tensorflow as tf

def from_generator(rows):
    return np.stack(list(rows))

data = from_generator(read_rows())
