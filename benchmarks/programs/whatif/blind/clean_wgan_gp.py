"""A well-made WGAN-GP on a mixture of Gaussians: critic and generator in one compiled call of many iterations."""

import tensorflow as tf
from tensorflow.keras import Input, Sequential
from tensorflow.keras.layers import Dense

tf.keras.utils.set_random_seed(9)
BATCH, NOISE, CRITIC_STEPS = 256, 16, 3


def mlp(n_in, n_out):
    return Sequential([Input((n_in,)), Dense(160, activation="relu"), Dense(160, activation="relu"), Dense(n_out)])


class WGAN(tf.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = mlp(NOISE, 2), mlp(2, 1)
        self.g_opt = tf.keras.optimizers.Adam(3e-4, beta_1=0.5)
        self.c_opt = tf.keras.optimizers.Adam(3e-4, beta_1=0.5)
        self.g_opt.build(self.generator.trainable_variables)
        self.c_opt.build(self.critic.trainable_variables)

    def real(self):
        k = tf.cast(tf.random.uniform([BATCH], 0, 8, tf.int32), tf.float32) * 0.785398
        return 2.0 * tf.stack([tf.cos(k), tf.sin(k)], 1) + 0.1 * tf.random.normal([BATCH, 2])

    def critic_step(self):
        real, fake = self.real(), self.generator(tf.random.normal([BATCH, NOISE]))
        mix = tf.random.uniform([BATCH, 1])
        between = mix * real + (1 - mix) * fake
        with tf.GradientTape() as tape:
            with tf.GradientTape() as slope_tape:
                slope_tape.watch(between)
                value = self.critic(between)
            slope = tf.sqrt(tf.reduce_sum(slope_tape.gradient(value, between) ** 2, axis=1) + 1e-12)
            distance = tf.reduce_mean(self.critic(real)) - tf.reduce_mean(self.critic(fake))
            loss = -distance + 10.0 * tf.reduce_mean((slope - 1.0) ** 2)
        variables = self.critic.trainable_variables
        self.c_opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return distance

    def generator_step(self):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(self.critic(self.generator(tf.random.normal([BATCH, NOISE]))))
        variables = self.generator.trainable_variables
        self.g_opt.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @tf.function
    def iterations(self, n):
        distance = tf.constant(0.0)
        for _ in tf.range(n):
            for _ in range(CRITIC_STEPS):
                distance = self.critic_step()
            self.generator_step()
        return distance


gan = WGAN()
for block in range(5):
    tf.print("block", block, "estimated distance", gan.iterations(tf.constant(80)))
