import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()

def make(context):
    size = context.get_per_replica_batch_size(GLOBAL)
    return tf.data.TFRecordDataset(files).batch(size)

dist = strategy.distribute_datasets_from_function(make)
