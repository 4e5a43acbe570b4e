import tensorflow as tf

(x, y), _ = tf.keras.datasets.cifar10.load_data()
x = x / 255.0
train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000)  #!
