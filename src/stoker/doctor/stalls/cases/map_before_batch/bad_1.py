import tensorflow as tf

def scale(image, label):
    return tf.cast(image, tf.float32) / 255.0, label

dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.map(scale, num_parallel_calls=tf.data.AUTOTUNE)  #!
dataset = dataset.shuffle(1000).batch(128).prefetch(tf.data.AUTOTUNE)
