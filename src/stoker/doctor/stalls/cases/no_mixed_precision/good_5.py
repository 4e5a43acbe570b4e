import tensorflow as tf

print(tf.config.list_physical_devices("GPU"))
model = tf.keras.applications.VGG16()
features = model.predict(images)
