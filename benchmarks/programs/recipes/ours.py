"""A recipe's own way from raw files to an exported model: the parts of its program, a fixed number of epochs."""

from __future__ import annotations

import gc
import json
import sys
import time

import keras
from pictures import on_a_base
from unseen import score, unseen

# Imported when they are first used, if not before; imports are not timed.
import stoker.data.image_reader
import stoker.data.readers
import stoker.data.text_reader  # noqa: F401
from stoker import Predictor, export, fit, recipes
from stoker.recipes.programs import image, table, text
from stoker.serve.export import child

KIND, DATA, OUT = sys.argv[1:4]
EPOCHS, SEED = map(int, sys.argv[4:6])


def train_on_base(model, train, pictures):
    """As the recipe does: the base is asked once, then its last layers are trained, too."""
    base, head = image.new_layers(model, pictures)
    asked = recipes.asked_once(base, train, recipes.Progress("head"), shuffle=True, batch_size=32)
    fit(head, asked, epochs=EPOCHS, verbose=0)
    whole = image.network("top", train, pictures)
    whole.set_weights(model.get_weights())
    return whole, fit(whole, train, epochs=EPOCHS, verbose=0)


def main() -> None:
    keras.utils.set_random_seed(SEED)
    start, cpu = time.perf_counter(), time.process_time()
    # As `recipes.Run` does.
    child.prepare()
    gc.freeze()
    if KIND == "table":
        settings = table.Settings(data=DATA, target="bikers", run=OUT, batch_size=512)
        train, _, _ = table.read(settings)
        model = table.network("plain", train, recipes.rows_of(train, most=100_000).labels, settings)
    elif KIND == "text":
        words = text.Settings(data=DATA, run=OUT)
        train, _, _, _ = text.read(words)
        model = text.network("mean", train, words)
    elif KIND == "base":
        pictures = on_a_base(DATA, OUT)
        train, _, _ = image.read(pictures)
        model = image.network("head", train, pictures)
    else:
        pictures = image.Settings(
            data=DATA, run=OUT, size=(28, 28), color_mode="grayscale", filters=(16, 32, 64)
        )
        train, _, _ = image.read(pictures)
        model = image.network("convolutions", train, pictures)
    read = time.perf_counter() - start
    if KIND == "base":
        model, history = train_on_base(model, train, pictures)
    else:
        history = fit(model, train, epochs=EPOCHS, verbose=0)
    trained = time.perf_counter() - start
    export(model, OUT, features=train)
    found = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "read": read,
        "trained": trained,
        "loss": history.history["loss"][-1],
    }
    if KIND != "base":
        rows, right = unseen(KIND, DATA)
        answers = Predictor(OUT).predict(rows)
        found["score"] = score(answers["prediction" if KIND == "table" else "label"], right)
    print(json.dumps(found))


main()
