import tensorflow as tf

generator = tf.keras.Sequential([tf.keras.layers.Dense(8)])
critic = tf.keras.Sequential([tf.keras.layers.Dense(1)])
for step in range(20000):
    fake = generator.predict(noise(64))  #!
    critic.train_on_batch(fake, zeros)
