import tensorflow as tf

def make_step(rate):
    return tf.function(lambda v: v * rate)  #!

while not converged:
    rate = rate * 0.9
    value = make_step(rate)(value)
