import tensorflow as tf

optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())

@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(loss_fn(y, model(x)))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(grads, model.trainable_variables)
