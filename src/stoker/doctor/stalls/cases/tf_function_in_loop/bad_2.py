import tensorflow as tf

def forward(x):
    return tf.matmul(x, weights)

for batch in dataset:
    y = tf.function(forward)(batch)  #!
