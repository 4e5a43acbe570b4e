"""Neural style transfer by optimising pixels against Gram matrices of a fixed, randomly initialised conv extractor."""

import sys

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(33)
SIDE = 80


def synthetic_picture(kind):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    if kind == "content":
        disk = ((xx - 0.5) ** 2 + (yy - 0.5) ** 2 < 0.1).astype("float32")
        return np.stack([disk, 0.5 * disk + 0.2, 1 - disk], -1)[None].astype("float32")
    waves = 0.5 + 0.5 * np.sin(40 * xx + 10 * np.sin(8 * yy))
    return np.stack([waves, waves**2, 1 - waves], -1)[None].astype("float32")


class StyleTransfer:
    def __init__(self, content, style):
        inputs = tf.keras.Input((SIDE, SIDE, 3))
        h, taps = inputs, []
        for filters in (16, 32, 48):
            h = tf.keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(h)
            taps.append(h)
            h = tf.keras.layers.AveragePooling2D(2)(h)
        self.extractor = tf.keras.Model(inputs, taps)
        self.extractor.trainable = False
        self.image = tf.Variable(content)
        self.optimizer = tf.keras.optimizers.Adam(0.02)
        self.optimizer.build([self.image])
        self.style_targets = [self.gram(f) for f in self.extractor(style)]
        self.content_target = self.extractor(content)[-1]

    @staticmethod
    def gram(features):
        n = tf.cast(tf.shape(features)[1] * tf.shape(features)[2], tf.float32)
        return tf.einsum("bijc,bijd->bcd", features, features) / n

    def step(self):
        with tf.GradientTape() as tape:  # stall: eager-train-step
            maps = self.extractor(self.image)
            style = tf.add_n([tf.reduce_mean((self.gram(m) - t) ** 2) for m, t in zip(maps, self.style_targets)])
            content = tf.reduce_mean((maps[-1] - self.content_target) ** 2)
            smooth = tf.reduce_mean(tf.image.total_variation(self.image)) / SIDE**2
            loss = 1e3 * style + content + 0.1 * smooth
        grad = tape.gradient(loss, self.image)
        self.optimizer.apply_gradients([(grad, self.image)])
        self.image.assign(tf.clip_by_value(self.image, 0.0, 1.0))
        return loss


def main(repair):
    job = StyleTransfer(synthetic_picture("content"), synthetic_picture("style"))
    step = job.step
    if "eager-train-step" in repair:
        step = tf.function(job.step)
    for i in range(480):
        loss = step()
        if i % 120 == 0:
            print("iteration", i, "loss", round(float(loss), 5))
    print("done", round(float(loss), 5), "mean pixel", round(float(tf.reduce_mean(job.image)), 4))


if __name__ == "__main__":
    main(sys.argv[1:])
