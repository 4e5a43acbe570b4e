import tensorflow as tf

def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss

step = tf.function(step, jit_compile=True)
for batch in dataset:
    step(batch)
