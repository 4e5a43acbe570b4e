"""WGAN-GP: a generator learns a ring in the plane. Two models, two optimizers, full control over the step.

python examples/trainer/wgan_gp.py
"""

import keras
import numpy as np
import tensorflow as tf

import stoker

random = np.random.default_rng(0)
angles = random.uniform(0, 2 * np.pi, size=(4096, 1))
ring = np.concatenate([2 * np.cos(angles), 2 * np.sin(angles)], axis=1).astype("float32")


class WGAN(stoker.Trainer):
    """Three updates of the critic for one of the generator."""

    def train_step(self, real):
        critic, generator = self.models["critic"], self.models["generator"]
        for _ in range(3):
            with tf.GradientTape() as tape:
                fake = generator(self.noise(real))
                penalty = stoker.gradient_penalty(critic, real, fake, seed=self.random)
                distance = tf.reduce_mean(critic(real)) - tf.reduce_mean(critic(fake))
                loss = 10 * penalty - distance
            self.minimize(tape, loss, "critic")
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic(generator(self.noise(real))))
        self.minimize(tape, loss, "generator")
        return {"distance": distance, "penalty": penalty}

    def noise(self, like):
        # From the trainer's own generator: a resumed run draws what it would have drawn.
        return keras.random.normal((tf.shape(like)[0], 4), seed=self.random)


def network(inputs, outputs):
    hidden = [keras.layers.Dense(64, activation="leaky_relu") for _ in range(2)]
    return keras.Sequential([keras.Input((inputs,)), *hidden, keras.layers.Dense(outputs)])


keras.utils.set_random_seed(1)
trainer = WGAN(
    {"critic": network(2, 1), "generator": network(4, 2)},
    {"critic": keras.optimizers.Adam(2e-3, beta_1=0.5), "generator": keras.optimizers.Adam(1e-3, beta_1=0.5)},
)
for round_ in range(3):
    history = trainer.fit(ring, batch_size=256, epochs=16, verbose=0).history
    made = trainer.models["generator"](random.normal(size=(1000, 4)).astype("float32")).numpy()
    radius = np.linalg.norm(made, axis=1)
    print(
        f"epoch {16 * (round_ + 1):>2}: distance {history['distance'][-1]:.3f}, "
        f"radius {radius.mean():.2f} +- {radius.std():.2f} (the ring has 2)"
    )
