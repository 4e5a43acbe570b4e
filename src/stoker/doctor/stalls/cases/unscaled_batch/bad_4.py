import tensorflow as tf

def pipeline(files):
    return tf.data.TFRecordDataset(files).batch(128, drop_remainder=True).prefetch(2)  #!

resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
strategy = tf.distribute.TPUStrategy(resolver)
with strategy.scope():
    model = build()
model.fit(pipeline(files))
