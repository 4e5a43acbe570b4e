import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.applications.ResNet50(weights=None, classes=10)  #!
    model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(train, validation_data=val)
