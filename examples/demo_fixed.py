"""Train an image classifier: demo.py with its stalls repaired.

The pictures are scaled batch by batch in tf.data, the step is one graph with the labels made inside it, and loss
and accuracy stay tensors until the end of the epoch.
"""

import argparse

import numpy as np
import tensorflow as tf

CLASSES = 10


def make_images(count):
    """Noisy pictures of ten patterns, and which pattern each shows."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 60, (CLASSES, 28, 28), np.uint8)
    labels = rng.integers(0, CLASSES, count)
    return patterns[labels] + rng.integers(0, 196, (count, 28, 28), np.uint8), labels


def make_dataset(images, labels, batch_size):
    def scale(images, labels):
        return tf.cast(images, tf.float32) / 255 - 0.5, labels

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch_size)
    return dataset.map(scale, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def make_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input([28, 28]),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(512, activation="relu"),
            tf.keras.layers.Dense(512, activation="relu"),
            tf.keras.layers.Dense(CLASSES),
        ]
    )


@tf.function
def train_step(model, optimizer, images, labels):
    targets = tf.one_hot(labels, CLASSES)
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, tf.reduce_mean(tf.cast(tf.argmax(logits, axis=1) == labels, tf.float32))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--examples", type=int, default=10_240)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(0)
    dataset = make_dataset(*make_images(args.examples), args.batch_size)
    model, optimizer = make_model(), tf.keras.optimizers.Adam(0.0002)
    for epoch in range(args.epochs):
        losses, accuracies = [], []
        for images, labels in dataset:
            loss, accuracy = train_step(model, optimizer, images, labels)
            losses.append(loss)
            accuracies.append(accuracy)
        loss, accuracy = tf.reduce_mean(losses), tf.reduce_mean(accuracies)
        print(f"epoch {epoch + 1}: loss {loss:.2f}, accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
