import tensorflow as tf

compiled = None
for i, batch in enumerate(dataset):
    if i == 0:
        compiled = tf.function(forward)
    compiled(batch)
