import tensorflow as tf

BATCH_SIZE = 32
strategy = tf.distribute.MultiWorkerMirroredStrategy()
ds = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=4)
ds = ds.shuffle(1000).batch(BATCH_SIZE)  #!
dist = strategy.experimental_distribute_dataset(ds)
