"""Trains a model with XLA, as often as asked for, each time in a process of its own; prints what each found, as JSON.

    python -m tests.train.programs.keep_compilations kept kept off

The processes are forked before TensorFlow has started, so that each starts it anew without the seconds that importing
takes. `taken` is whether TensorFlow has left the kept file as it was: it replaces what it compiles again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback


def train() -> dict[str, object]:
    """Train; what came out, and what is kept now."""
    import keras
    import numpy as np
    import tensorflow as tf

    import stoker
    from stoker import compilations

    @tf.function(jit_compile=True)
    def own(x: object) -> object:
        return tf.tanh(x)

    keras.utils.set_random_seed(1)
    x = np.random.default_rng(0).normal(size=(100, 8)).astype("float32")
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    own(tf.ones([3]))
    stoker.fit(model, x, x[:, :1], batch_size=32, epochs=2, verbose=0, plan=stoker.Plan(jit="loop"))
    own(tf.ones([4]))
    kept = sorted(compilations.root().glob("*/*.pb"))
    directory = compilations.own_directory()
    taken = directory is not None and all(path.samefile(directory / path.name) for path in kept)
    weights = b"".join(one.numpy().tobytes() for one in model.weights)
    return {"bits": hashlib.sha256(weights).hexdigest(), "kept": [p.name for p in kept], "taken": taken}


def main() -> None:
    """Start one process after another."""
    import keras  # noqa: F401 - once for all processes

    import stoker.train.fit
    from stoker import compilations

    for way in sys.argv[1:]:
        sys.stdout.flush()
        process = os.fork()
        if process:
            if os.waitpid(process, 0)[1]:
                sys.exit("the training failed")
            continue
        code = 1
        try:
            if way == "kept":
                compilations.name_directory()
            else:
                os.environ.pop(compilations.VARIABLE, None)
            print(json.dumps({**train(), "used": stoker.compilations.own_directory() is not None}))
            sys.stdout.flush()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)


if __name__ == "__main__":
    main()
