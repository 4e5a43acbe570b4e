"""Train an image classifier, written the way such programs usually start out.

It is correct, but several times slower than it needs to be: `stoker run examples/demo.py` says why. demo_fixed.py is
the same training with the stalls repaired.
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
    def examples():
        for image, label in zip(images, labels, strict=True):
            yield image.astype(np.float32) / 255 - 0.5, label

    signature = (tf.TensorSpec([28, 28], tf.float32), tf.TensorSpec([], tf.int64))
    return tf.data.Dataset.from_generator(examples, output_signature=signature).batch(batch_size)


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


def train_step(model, optimizer, images, labels):
    targets = np.eye(CLASSES, dtype=np.float32)[labels]
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, np.mean(np.argmax(logits, axis=1) == labels)


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
            losses.append(float(loss))
            accuracies.append(accuracy)
        loss, accuracy = np.mean(losses), np.mean(accuracies)
        print(f"epoch {epoch + 1}: loss {loss:.2f}, accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
