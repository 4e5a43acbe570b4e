import tensorflow as tf
from sklearn.ensemble import RandomForestClassifier

RandomForestClassifier().fit(x, y)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.fit(x, y)
