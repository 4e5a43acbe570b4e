import numpy as np
import tensorflow.compat.v1 as tf

tf.enable_v2_behavior()
layer = tf.keras.layers.Dense(2)
optimizer = tf.keras.optimizers.SGD()
rows = np.random.rand(512, 8)
for step in range(4000):
    chosen = rows[np.random.randint(0, 512, 32)]
    batch = tf.convert_to_tensor(chosen, dtype=tf.float32)  #!
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(layer(batch)))
    gradients = tape.gradient(loss, layer.trainable_variables)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables))
