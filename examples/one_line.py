"""Change one line, `model.fit` to `stoker.fit`, and compare: the same training, and how long each takes.

The times leave out the first epochs of both (tracing, deciding).
"""

import argparse
import time

import keras
import numpy as np

import stoker

ROWS = 10_000


def make_model():
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(width, activation="relu") for width in (128, 128)]
    model = keras.Sequential([keras.Input([100]), *layers, keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    epochs = parser.parse_args().epochs
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(ROWS, 100)).astype(np.float32), rng.integers(0, 10, ROWS)

    slow, quick = make_model(), make_model()
    ways = {"model.fit": slow.fit, "stoker.fit": lambda *data, **options: stoker.fit(quick, *data, **options)}
    seconds, losses = {}, {}
    for name, fit in ways.items():
        fit(x, y, epochs=1, shuffle=False, verbose=0)
        begin = time.perf_counter()
        history = fit(x, y, epochs=epochs, shuffle=False, verbose=0)
        seconds[name], losses[name] = time.perf_counter() - begin, history.history["loss"]
        print(
            f"{name:<11} {seconds[name]:5.2f} s, loss {losses[name][0]:.6f} to {losses[name][-1]:.6f}",
            flush=True,
        )
    print(f"plan: {history.plan.line()}")
    apart = max(float(np.abs(a - b).max()) for a, b in zip(slow.get_weights(), quick.get_weights()))
    same = f"weights at most {apart:.0e} apart" if apart else "every weight the same to the last bit"
    print(f"{seconds['model.fit'] / seconds['stoker.fit']:.1f}x faster, {same}.")


if __name__ == "__main__":
    main()
