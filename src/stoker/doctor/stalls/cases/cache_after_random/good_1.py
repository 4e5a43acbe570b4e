import tensorflow as tf

def augment(image, label):
    return tf.image.random_flip_left_right(image), label

train = tf.data.Dataset.from_tensor_slices((images, labels)).cache()
train = train.shuffle(1000).map(augment, num_parallel_calls=tf.data.AUTOTUNE)
train = train.batch(32).prefetch(2)
