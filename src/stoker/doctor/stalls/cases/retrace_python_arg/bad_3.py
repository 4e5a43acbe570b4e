import tensorflow as tf

def loss_of(x, weight):
    return tf.reduce_sum(x) * weight

loss_of = tf.function(loss_of)
beta = 0.0
for epoch in range(50):
    beta = min(1.0, beta + 0.02)
    for x in dataset:
        loss_of(x, weight=beta)  #!
