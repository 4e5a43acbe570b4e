import tensorflow as tf

(x, y), _ = tf.keras.datasets.mnist.load_data()
train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000)
