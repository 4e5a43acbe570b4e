import tensorflow as tf

def load(split):
    ds = tf.data.Dataset.list_files(split + "/*.jpg")
    ds = ds.map(decode, num_parallel_calls=8)
    return ds.batch(16).prefetch(tf.data.AUTOTUNE)

model.fit(load("train"), validation_data=load("val"))
