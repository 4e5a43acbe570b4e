import tensorflow as tf

board = tf.keras.callbacks.TensorBoard("logs", update_freq="batch")  #!
saver = tf.keras.callbacks.ModelCheckpoint("last.keras", save_freq=1)  #!
