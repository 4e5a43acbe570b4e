import tensorflow as tf

def tuned(ds):
    return ds.batch(32).prefetch(2)

dataset = tuned(tf.data.Dataset.range(100).shuffle(100)).repeat()
model.fit(dataset, steps_per_epoch=10)
