import tensorflow as tf

board = tf.keras.callbacks.TensorBoard("logs")
saver = tf.keras.callbacks.ModelCheckpoint("last.keras", save_freq="epoch")
