import keras
import tensorflow as tf

generator = keras.Sequential(
    [keras.Input((32,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(784)]
)
critic = keras.Sequential(
    [keras.Input((784,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(1)]
)
for_generator, for_critic = keras.optimizers.Adam(1e-4), keras.optimizers.Adam(1e-4)
loss_of = keras.losses.BinaryCrossentropy(from_logits=True)
real = tf.random.normal([256, 784])


@tf.function
def step(real):
    noise = tf.random.normal([256, 32])
    with tf.GradientTape() as tape, tf.GradientTape() as critic_tape:
        fake = generator(noise, training=True)
        on_real, on_fake = critic(real, training=True), critic(fake, training=True)
        critic_loss = loss_of(tf.ones_like(on_real), on_real) + loss_of(tf.zeros_like(on_fake), on_fake)
        loss = loss_of(tf.ones_like(on_fake), on_fake)
    for one, used, optimizer, model in (
        (loss, tape, for_generator, generator),
        (critic_loss, critic_tape, for_critic, critic),
    ):
        gradients = used.gradient(one, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return critic_loss


for _ in range(80):
    loss = step(real)
