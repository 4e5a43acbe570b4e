import tensorflow as tf

def batched(ds):
    return ds.batch(16, drop_remainder=True)

ds = batched(tf.data.Dataset.range(10000)).shuffle(64)  #!
