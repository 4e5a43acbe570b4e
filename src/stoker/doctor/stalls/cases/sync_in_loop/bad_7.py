import tensorflow as tf

error = tf.constant(1.0)
while error > 1e-3:  #!
    x, error = solve(x)
    error = tf.norm(error)
