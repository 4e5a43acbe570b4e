import tensorflow as tf

_, (x_test, y_test) = tf.keras.datasets.cifar10.load_data()
x_test = x_test / 255.0
test = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(256)
