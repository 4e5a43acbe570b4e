import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
dataset = tf.data.Dataset.from_tensor_slices(x).batch(64)
dataset = strategy.experimental_distribute_dataset(dataset)
for batch in dataset:
    distributed_train_step(batch)
