import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()

def replica_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss

@tf.function
def distributed_step(batch):
    return strategy.run(replica_step, args=(batch,))

for batch in dist_dataset:
    distributed_step(batch)
