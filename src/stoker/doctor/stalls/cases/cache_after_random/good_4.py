import tensorflow as tf

def resize(image):
    return tf.image.resize(image, [64, 64])

ds = tf.data.Dataset.from_tensor_slices(images).map(resize, num_parallel_calls=4).cache().batch(8)
