"""The usual way from raw files to an exported model: pandas or Keras' loaders, `model.fit`, `model.export`."""

from __future__ import annotations

import json
import sys
import time

import keras
import pandas as pd
import tensorflow as tf
from keras import layers
from pictures import on_a_base
from unseen import score, unseen

from stoker.recipes.programs import image

KIND, DATA, OUT = sys.argv[1:4]
EPOCHS, SEED = map(int, sys.argv[4:6])


def read_table():
    frame = pd.read_csv(DATA)
    frame = frame.sample(frac=1, random_state=0)
    target = frame.pop("bikers").astype("float32")
    cut = int(len(frame) * 0.7)
    inputs, parts = {}, []
    for name in frame:
        column = frame[name][:cut]
        if column.dtype == object or str(column.dtype) in ("str", "string"):
            inputs[name] = keras.Input((1,), name=name, dtype="string")
            lookup = layers.StringLookup(output_mode="one_hot")
            lookup.adapt(column.to_numpy(object))
            parts.append(lookup(inputs[name]))
        else:
            inputs[name] = keras.Input((1,), name=name)
            scale = layers.Normalization(axis=None)
            scale.adapt(column.to_numpy("float32"))
            parts.append(scale(inputs[name]))
    mean, variance = float(target[:cut].mean()), float(target[:cut].var())

    def columns(frame):
        given = {name: frame[name].to_numpy() for name in frame}
        return {
            name: (one if one.dtype == object else one.astype("float32"))[:, None]
            for name, one in given.items()
        }

    train = tf.data.Dataset.from_tensor_slices((columns(frame[:cut]), target[:cut].to_numpy()))
    train = train.shuffle(cut).batch(512).prefetch(tf.data.AUTOTUNE)
    x = layers.Concatenate()(parts)
    for width in (128, 64):
        x = layers.Dropout(0.1)(layers.Dense(width, activation="relu")(x))
    answer = layers.Normalization(axis=None, mean=mean, variance=variance, invert=True)(layers.Dense(1)(x))
    model = keras.Model(inputs, answer)
    optimizer = keras.optimizers.AdamW(2e-3, weight_decay=1e-3)
    model.compile(optimizer, "mse", loss_weights=[1 / variance], metrics=["mae"])

    def answered(rows):
        return model.predict(tf.data.Dataset.from_tensor_slices((columns(rows),)).batch(512), verbose=0)

    return model, train, answered


def read_text():
    options = {"batch_size": 32, "seed": 0, "validation_split": 0.3}
    train = keras.utils.text_dataset_from_directory(DATA, subset="training", **options)
    names = train.class_names
    words = layers.TextVectorization(max_tokens=20_000)
    words.adapt(train.map(lambda text, _: text))

    def ids(text, label):
        return words(text)[:, :300], label

    train = train.map(ids, num_parallel_calls=tf.data.AUTOTUNE)
    given = keras.Input((None,), dtype="int64")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(words.vocabulary_size(), 64, mask_zero=True)(given))
    x = layers.Dropout(0.4)(layers.Dense(64, activation="relu")(layers.Dropout(0.4)(x)))
    model = keras.Model(given, layers.Dense(len(names), activation="softmax")(x))
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])

    def answered(texts):
        return named(model.predict(words(tf.constant(texts))[:, :300], verbose=0), names)

    return model, train.cache().prefetch(tf.data.AUTOTUNE), answered


def named(scores, names):
    return [names[best] for best in scores.argmax(1)]


def read_images():
    options = {
        "batch_size": 32,
        "seed": 0,
        "validation_split": 0.3,
        "image_size": (28, 28),
        "color_mode": "grayscale",
    }
    train = keras.utils.image_dataset_from_directory(DATA, subset="training", **options)
    pictures = image.Settings(data=DATA, run=OUT, size=(28, 28), color_mode="grayscale", filters=(16, 32, 64))
    model = image.network("convolutions", train, pictures)
    names = train.class_names
    cached = train.cache().shuffle(50).prefetch(tf.data.AUTOTUNE)
    return model, cached, lambda pixels: named(model.predict(pixels, verbose=0), names)


def read_for_base():
    options = {"batch_size": 32, "seed": 0, "validation_split": 0.3, "image_size": (64, 64)}
    train = keras.utils.image_dataset_from_directory(DATA, subset="training", **options)
    model = image.network("head", train, on_a_base(DATA, OUT))
    # Before `cache`, which does not hand the names of the classes on.
    return model, train, None


def train_on_base(model, train):
    """The new layers alone, then the last ones of the base, too."""
    cached = train.cache().shuffle(50).prefetch(tf.data.AUTOTUNE)
    model.fit(cached, epochs=EPOCHS, verbose=0)
    whole = image.network("top", train, on_a_base(DATA, OUT))
    whole.set_weights(model.get_weights())
    return whole, whole.fit(cached, epochs=EPOCHS, verbose=0)


def main() -> None:
    keras.utils.set_random_seed(SEED)
    start, cpu = time.perf_counter(), time.process_time()
    model, train, answered = READERS[KIND]()
    read = time.perf_counter() - start
    if KIND == "base":
        model, history = train_on_base(model, train)
    else:
        history = model.fit(train, epochs=EPOCHS, verbose=0)
    trained = time.perf_counter() - start
    model.export(OUT, verbose=False)
    found = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "read": read,
        "trained": trained,
        "loss": history.history["loss"][-1],
    }
    if answered is not None:
        rows, right = unseen(KIND, DATA)
        found["score"] = score(answered(rows), right)
    print(json.dumps(found))


READERS = {"table": read_table, "text": read_text, "image": read_images, "base": read_for_base}
main()
