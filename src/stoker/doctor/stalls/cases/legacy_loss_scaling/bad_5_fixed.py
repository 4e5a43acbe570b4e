import tensorflow as tf

opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))

def step(x):
    with tf.GradientTape() as tape:
        loss = opt.get_scaled_loss(tf.reduce_mean(model(x)))
    grads = tape.gradient(loss, model.trainable_variables)
    grads = opt.get_unscaled_gradients(grads)
    grads, _ = tf.clip_by_global_norm(grads, 1.0)
    opt.apply_gradients(zip(grads, model.trainable_variables))
