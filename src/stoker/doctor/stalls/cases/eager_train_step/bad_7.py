import tensorflow as tf

tf.config.run_functions_eagerly(True)  #!

def distance(wanted, given):
    return tf.reduce_mean(tf.abs(wanted - given))

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(  #!
    optimizer="adam",  # as in the paper
    loss=distance,
    run_eagerly=True,  # to look at it
)
model.run_eagerly = True  #!
model.fit(x, y)
