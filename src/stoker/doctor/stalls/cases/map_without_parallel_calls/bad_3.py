import tensorflow as tf

def prepare(ds, augment=False):
    ds = ds.map(rescale)  #!
    if augment:
        ds = ds.map(flip, num_parallel_calls=4)
    return ds.prefetch(2)

train = prepare(tf.data.Dataset.from_tensor_slices(images), augment=True)
