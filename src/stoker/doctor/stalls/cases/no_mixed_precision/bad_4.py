import tensorflow as tf

with tf.device("/GPU:0"):
    net = tf.keras.Sequential([tf.keras.layers.LSTM(units=1024), tf.keras.layers.Dense(50)])  #!
    net.compile("adam", "mse")
    net.fit(x, y, validation_split=0.1)
