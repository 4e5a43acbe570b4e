"""A sequence-to-sequence number reverser trained with scheduled sampling: the teacher is believed less and less."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(90)
VOCAB, LENGTH, UNITS, BATCH = 12, 8, 128, 128
ROUNDS, STEPS_PER_ROUND = 9, 26


class Seq2Seq(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(VOCAB, 24)
        self.encoder = layers.GRU(UNITS, return_state=True)
        self.cell = layers.GRUCell(UNITS)
        self.read_out = layers.Dense(VOCAB)

    def call(self, source, target, believe):
        _, state = self.encoder(self.embed(source))
        token = tf.zeros_like(source[:, 0])
        logits = []
        for t in range(LENGTH):
            out, state = self.cell(self.embed(token), state)
            step_logits = self.read_out(out)
            logits.append(step_logits)
            own = tf.argmax(step_logits, axis=-1, output_type=tf.int32)
            coin = tf.random.uniform(tf.shape(own)) < believe
            token = tf.where(coin, target[:, t], own)
        return tf.stack(logits, axis=1)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = tf.keras.optimizers.Adam(2e-3)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def prepare(self, source, target):
        self.model(source, target, believe=1.0)
        self.optimizer.build(self.model.trainable_variables)

    @tf.function
    def step(self, source, target, believe):
        with tf.GradientTape() as tape:
            loss = self.loss(target, self.model(source, target, believe=believe))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


def run(repaired):
    rng = np.random.default_rng(90)
    source = tf.constant(rng.integers(1, VOCAB, (ROUNDS * STEPS_PER_ROUND, BATCH, LENGTH)), tf.int32)
    target = tf.reverse(source, axis=[2])
    trainer = Trainer(Seq2Seq())
    trainer.prepare(source[0], target[0])
    for r in range(ROUNDS):
        believe = 1.0 - 0.5 * r / ROUNDS
        if "retrace-python-arg" in repaired:
            believe = tf.constant(believe)
        for s in range(STEPS_PER_ROUND):
            i = r * STEPS_PER_ROUND + s
            loss = trainer.step(source[i], target[i], believe)  # stall: retrace-python-arg
        if r % 4 == 0:
            print("round", r, "loss", round(float(loss), 4))


if __name__ == "__main__":
    run(set(sys.argv[1:]))
