import random
import tensorflow as tf

@tf.function
def augment(image):
    if random.random() < 0.5:  #!
        image = tf.image.flip_left_right(image)
    return image
