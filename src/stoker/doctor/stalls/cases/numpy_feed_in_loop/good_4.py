import numpy as np
import tensorflow as tf

for step in range(10000):
    loss = train_step(batch)
    if step % 1000 == 0:
        noise = tf.convert_to_tensor(np.random.rand(16, 100))
        save_images(generator(noise))
