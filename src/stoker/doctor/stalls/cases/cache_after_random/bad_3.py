import tensorflow as tf

augmentation = tf.keras.Sequential([
    tf.keras.layers.RandomFlip("horizontal"),
    tf.keras.layers.RandomRotation(0.1),
])
train = train_ds.map(lambda x, y: (augmentation(x, training=True), y), num_parallel_calls=4)
train = train.cache()  #!
