"""A well-made distillation: a small CNN learns from a larger one over a vectorised, parallel, prefetched augmentation."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(70)
SIDE, N, BATCH, CLASSES = 24, 3200, 64, 4

rng = np.random.default_rng(70)
labels = rng.integers(0, CLASSES, N)
yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
theta = (labels * np.pi / CLASSES)[:, None, None]
images = np.sin(25 * (xx * np.cos(theta) + yy * np.sin(theta)) + rng.uniform(0, 6, (N, 1, 1)))
images = (images + 0.8 * rng.standard_normal(images.shape)).astype("float32")[..., None]


def augment(x, y):
    x = x + 0.2 * tf.random.normal(tf.shape(x))
    return x * tf.random.uniform([tf.shape(x)[0], 1, 1, 1], 0.8, 1.2), y


data = (
    tf.data.Dataset.from_tensor_slices((images, labels.astype("int32")))
    .cache()
    .shuffle(N, seed=7)
    .batch(BATCH, drop_remainder=True)
    .map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    .prefetch(tf.data.AUTOTUNE)
)


def cnn(*filters):
    stack = [keras.Input((SIDE, SIDE, 1))]
    stack += [layers.Conv2D(f, 3, strides=2, padding="same", activation="relu") for f in filters]
    return keras.Sequential(stack + [layers.Flatten(), layers.Dense(CLASSES)])


class Distiller(keras.Model):
    def __init__(self, teacher, student, temperature=3.0):
        super().__init__()
        self.teacher, self.student, self.temperature = teacher, student, temperature
        self.teacher.trainable = False
        self.tracker = keras.metrics.Mean(name="loss")
        self.accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    @property
    def metrics(self):
        return [self.tracker, self.accuracy]

    def call(self, x):
        return self.student(x)

    def train_step(self, data):
        x, y = data
        soft = tf.nn.softmax(self.teacher(x, training=False) / self.temperature)
        with tf.GradientTape() as tape:
            logits = self.student(x, training=True)
            hard = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            copy = tf.nn.softmax_cross_entropy_with_logits(labels=soft, logits=logits / self.temperature)
            loss = tf.reduce_mean(0.3 * hard + 0.7 * self.temperature**2 * copy)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.student.trainable_variables), self.student.trainable_variables))
        self.tracker.update_state(loss)
        self.accuracy.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}


teacher = cnn(32, 64, 96)
teacher.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], steps_per_execution=10)
teacher.fit(data, epochs=4, verbose=2)
distiller = Distiller(teacher, cnn(12, 24, 24))
distiller.compile(optimizer=keras.optimizers.Adam(2e-3), steps_per_execution=10)
distiller.fit(data, epochs=5, verbose=2)
