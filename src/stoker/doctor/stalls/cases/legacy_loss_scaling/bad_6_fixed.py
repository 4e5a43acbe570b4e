import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
opt = tf.keras.optimizers.Adam()

def step(x):
    with tf.GradientTape() as tape:
        scaled = opt.get_scaled_loss(tf.reduce_mean(model(x)))
    grads = tape.gradient(scaled, model.trainable_variables)
    opt.apply_gradients(zip(opt.get_unscaled_gradients(grads), model.trainable_variables))
