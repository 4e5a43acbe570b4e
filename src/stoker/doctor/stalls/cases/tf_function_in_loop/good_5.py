import tensorflow as tf

steps = {}
for task, batch in stream:
    if task not in steps:
        steps[task] = tf.function(make(task))
    loss = steps[task](batch)
    total = total + tf.reduce_mean(loss)
