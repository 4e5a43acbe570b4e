import tensorflow as tf


def distance(wanted, given):
    return tf.reduce_mean(tf.abs(wanted - given))

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(
    optimizer="adam",  # as in the paper
    loss=distance,
)
model.fit(x, y)
