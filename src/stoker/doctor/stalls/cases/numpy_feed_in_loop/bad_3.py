import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
for x, y in dataset.as_numpy_iterator():
    model.train_on_batch(x, y)  #!
