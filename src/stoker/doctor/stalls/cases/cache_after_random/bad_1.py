import tensorflow as tf

def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    return image, label

train = tf.data.Dataset.from_tensor_slices((images, labels))
train = train.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
train = train.cache().shuffle(1000).batch(32).prefetch(2)  #!
