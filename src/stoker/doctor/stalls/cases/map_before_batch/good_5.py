import tensorflow as tf

# In front of a batch's shape, the new dimension would come before the batch.
def convert(image, label):
    return tf.expand_dims(tf.cast(image, tf.float32), axis=0), label

dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.map(convert, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(1)
