import tensorflow as tf

@tf.function
def accumulate(total, i):
    return total + i

i = 0
while i < 10000:
    total = accumulate(total, i)  #!
    i += 1
