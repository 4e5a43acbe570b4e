"""Programs in the shape of published Keras examples, through Keras and through Stoker: time by the clock and by CPU.

    python benchmarks/keras_examples.py [--rounds N] [CASE ...]

The models and the shapes of their data are those of the examples on keras.io; the data is drawn at random. Each round
runs every case once with Keras and once with Stoker, in turn, each in a process of its own. The table has the medians
of all rounds, and the lowest and highest ratio of a round: on a machine that does other work, trust the CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

Timed = Callable[[Callable[[], Any]], None]


def deep_recommender(verbs: Any, timed: Timed) -> None:
    """The candidate tower of a retrieval model, asked for all candidates while the whole model is trained."""
    import keras
    import numpy as np
    import tensorflow as tf

    movies, users, draw = 1682, 943, np.random.default_rng(3)

    def column(high: int, *shape: int) -> Any:
        return draw.integers(0, high, shape).astype("int32")

    candidates = {
        "movie_id": tf.constant(np.arange(movies + 1, dtype="int32")),
        "title": tf.constant(column(1500, movies + 1, 16)),
        "genres": tf.constant(column(20, movies + 1, 6)),
    }
    rows = 20_000
    inputs = {name: column(size, rows) for name, size in (("user_id", users), ("age", 10), ("gender", 2))}
    chosen = draw.integers(0, movies, rows)
    inputs |= {name: leaf.numpy()[chosen] for name, leaf in candidates.items()}
    ratings = tf.data.Dataset.from_tensor_slices((inputs, draw.random(rows, "float32"))).batch(1000).cache()

    def mean_of_words(words: int) -> Any:
        layers = [keras.layers.Embedding(words, 32, mask_zero=True), keras.layers.GlobalAveragePooling1D()]
        return keras.Sequential(layers)

    class Users(keras.Model):  # type: ignore[misc]
        def __init__(self, sizes: tuple[int, ...]) -> None:
            super().__init__()
            self.tables = {
                name: keras.layers.Embedding(size, 32)
                for name, size in (("user_id", users), ("age", 10), ("gender", 2))
            }
            self.dense = keras.Sequential([keras.layers.Dense(size) for size in sizes])

        def call(self, inputs: Any) -> Any:
            return self.dense(
                keras.ops.concatenate([one(inputs[name]) for name, one in self.tables.items()], 1)
            )

    class Movies(keras.Model):  # type: ignore[misc]
        def __init__(self, sizes: tuple[int, ...]) -> None:
            super().__init__()
            self.movie = keras.layers.Embedding(movies + 1, 32)
            self.title, self.genres = mean_of_words(1501), mean_of_words(21)
            self.dense = keras.Sequential([keras.layers.Dense(size) for size in sizes])

        def call(self, inputs: Any) -> Any:
            parts = [
                self.movie(inputs["movie_id"]),
                self.title(inputs["title"]),
                self.genres(inputs["genres"]),
            ]
            return self.dense(keras.ops.concatenate(parts, 1))

    class Retrieval(keras.Model):  # type: ignore[misc]
        def __init__(self, sizes: tuple[int, ...]) -> None:
            super().__init__()
            self.users, self.movies = Users(sizes), Movies(sizes)
            self.loss_of_scores = keras.losses.MeanSquaredError()

        def call(self, inputs: Any) -> Any:
            return self.users(inputs), self.movies(inputs)

        def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool = True) -> Any:
            scores = keras.ops.sum(y_pred[0] * y_pred[1], axis=1, keepdims=True)
            return self.loss_of_scores(keras.ops.expand_dims(y, -1), scores, sample_weight)

    for sizes in ((32,), (64, 32)):
        model = Retrieval(sizes)
        timed(lambda model=model: verbs.predict(model.movies, candidates, verbose=0))
        model.compile(keras.optimizers.Adagrad(0.05))
        verbs.fit(model, ratings, epochs=1, verbose=0)
        timed(lambda model=model: verbs.predict(model.movies, candidates, verbose=0))


def sequential_retrieval(verbs: Any, timed: Timed) -> None:
    """The next films for one user, by a GRU over those seen and a product with all films."""
    import keras
    import numpy as np
    import tensorflow as tf

    films, seen = 3953, 10
    draw = np.random.default_rng(3)

    class Sequences(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.query = keras.Sequential([keras.layers.Embedding(films, 128), keras.layers.GRU(128)])
            self.candidates = keras.layers.Embedding(films, 128)

        def build(self, shape: Any) -> None:
            self.query.build(shape)
            self.candidates.build(shape)

        def call(self, inputs: Any, training: bool = False) -> Any:
            query = self.query(inputs)
            if training:
                return {"query": query}
            scores = keras.ops.matmul(query, keras.ops.transpose(self.candidates.embeddings))
            return {"query": query, "films": keras.ops.top_k(scores, k=10)[1]}

    model = Sequences()
    model.build((None, seen))
    rows = draw.integers(0, films, (100, seen)).astype("int32"), draw.integers(0, films, 100)
    sequence = tf.data.Dataset.from_tensor_slices(rows).take(1).batch(1)
    timed(lambda: verbs.predict(model, sequence, verbose=0))
    timed(lambda: verbs.predict(model, sequence, verbose=0))


def word_embeddings(verbs: Any, timed: Timed) -> None:
    """Texts as 200 words, embeddings that are not trained, three convolutions."""
    import keras
    import numpy as np

    draw, rows = np.random.default_rng(3), 4096
    x, y = draw.integers(0, 20_000, (rows, 200)), draw.integers(0, 20, rows)
    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(20_002, 100, trainable=False),
            layers.Conv1D(128, 5, activation="relu"),
            layers.MaxPooling1D(5),
            layers.Conv1D(128, 5, activation="relu"),
            layers.MaxPooling1D(5),
            layers.Conv1D(128, 5, activation="relu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(20, activation="softmax"),
        ]
    )
    model.compile("rmsprop", "sparse_categorical_crossentropy", metrics=["acc"])
    options = {"batch_size": 128, "validation_data": (x[:1024], y[:1024]), "verbose": 0}
    verbs.fit(model, x, y, epochs=1, **options)
    timed(lambda: verbs.fit(model, x, y, epochs=2, **options))


def feature_space(verbs: Any, timed: Timed) -> None:
    """Rows of text and numbers, made into features by a map of the pipeline; a small model."""
    import keras
    import numpy as np
    import tensorflow as tf

    draw, rows = np.random.default_rng(3), 4096
    space = keras.utils.FeatureSpace
    texts = [f"text{number}" for number in range(10)]
    numbers = [f"number{number}" for number in range(7)]
    columns: dict[str, Any] = {name: draw.choice(["yes", "no", "unknown", "may"], rows) for name in texts}
    columns |= {name: draw.normal(size=rows).astype("float32") for name in numbers}
    columns |= {"age": draw.integers(18, 90, rows), "days": draw.integers(0, 999, rows)}
    features: dict[str, Any] = {name: space.string_categorical(num_oov_indices=0) for name in texts}
    features |= {name: space.float_normalized() for name in numbers}
    features |= {"age": space.float_discretized(num_bins=4), "days": space.integer_hashed(num_bins=4)}
    crosses = [space.cross((texts[number], texts[number + 1]), crossing_dim=8) for number in (0, 2, 4)]
    made = keras.utils.FeatureSpace(features, crosses=crosses, output_mode="concat")
    lookup = keras.layers.StringLookup(vocabulary=["no", "yes"], num_oov_indices=0)
    labels = draw.choice(["no", "yes"], rows)

    def batches(chosen: slice) -> tf.data.Dataset:
        some = {name: values[chosen] for name, values in columns.items()}, labels[chosen]
        data = tf.data.Dataset.from_tensor_slices(some)
        data = data.map(lambda x, y: (x, lookup(y)), num_parallel_calls=tf.data.AUTOTUNE)
        return data.shuffle(rows).batch(32)

    def with_features(data: tf.data.Dataset) -> tf.data.Dataset:
        mapped = data.map(lambda x, y: (made(x), y), num_parallel_calls=tf.data.AUTOTUNE)
        return mapped.prefetch(tf.data.AUTOTUNE)

    training, held_out = batches(slice(0, 3296)), batches(slice(3296, rows))
    made.adapt(training.map(lambda x, _: x))
    ready, held_out = with_features(training), with_features(held_out)
    hidden = keras.layers.Dense(64, activation="relu")(made.get_encoded_features())
    output = keras.layers.Dense(1, activation="sigmoid")(keras.layers.Dropout(0.5)(hidden))
    model = keras.Model(made.get_encoded_features(), output)
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    options = {"validation_data": held_out, "verbose": 0}
    verbs.fit(model, ready, epochs=1, **options)
    timed(lambda: verbs.fit(model, ready, epochs=4, **options))


CASES = {
    "deep_recommender": deep_recommender,
    "sequential_retrieval": sequential_retrieval,
    "word_embeddings": word_embeddings,
    "feature_space": feature_space,
}


class OfKeras:
    """Keras' own verbs, called as Stoker's are."""

    def __getattr__(self, verb: str) -> Any:
        return lambda model, *given, **options: getattr(model, verb)(*given, **options)


def run(case: str, way: str) -> dict[str, float]:
    """One case in this process: seconds by the clock and by CPU, and functions traced, of what is timed in it."""
    from tensorflow.python.eager.polymorphic_function import tracing_compilation

    import stoker

    spent = {"wall": 0.0, "cpu": 0.0, "traces": 0.0}
    made, plain = [0], tracing_compilation._create_concrete_function

    def counted(*args: Any, **options: Any) -> Any:
        made[0] += 1
        return plain(*args, **options)

    tracing_compilation._create_concrete_function = counted

    def timed(work: Callable[[], Any]) -> None:
        wall, cpu, traces = time.perf_counter(), _cpu(), made[0]
        work()
        spent["wall"] += time.perf_counter() - wall
        spent["cpu"] += _cpu() - cpu
        spent["traces"] += made[0] - traces

    # Imported at their first use: in the published programs other verbs of theirs came before.
    verbs = {"keras": OfKeras(), "stoker": SimpleNamespace(fit=stoker.fit, predict=stoker.predict)}
    CASES[case](verbs[way], timed)
    return spent


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all without")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", nargs=2, metavar=("CASE", "WAY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run(*options.one)), flush=True)
        # TensorFlow takes seconds to leave.
        os._exit(0)
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}: there are {', '.join(CASES)}")
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; rounds: {options.rounds}")
    print("| case | Keras s (CPU s) | Stoker s (CPU s) | by the clock | by CPU | traces, Keras / Stoker |")
    print("|---|---|---|---|---|---|")
    for case in options.cases or CASES:
        found: dict[str, list[dict[str, float]]] = {"keras": [], "stoker": []}
        for number in range(options.rounds):
            for way in ("keras", "stoker") if number % 2 == 0 else ("stoker", "keras"):
                found[way].append(_measured(case, way))
        print(_row(case, found["keras"], found["stoker"]), flush=True)
    print(f"load after: {os.getloadavg()[0]:.1f}")
    return 0


def _measured(case: str, way: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", case, way], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{case} with {way} failed:\n{done.stderr[-2000:]}")
    spent: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return spent


def _row(case: str, keras: list[dict[str, float]], ours: list[dict[str, float]]) -> str:
    def median(runs: list[dict[str, float]], what: str) -> float:
        return statistics.median(one[what] for one in runs)

    def ratio(what: str) -> str:
        each = [theirs[what] / mine[what] for theirs, mine in zip(keras, ours, strict=True)]
        return f"{median(keras, what) / median(ours, what):.2f}x ({min(each):.2f} to {max(each):.2f})"

    times = [f"{median(runs, 'wall'):.2f} ({median(runs, 'cpu'):.2f})" for runs in (keras, ours)]
    traces = f"{median(keras, 'traces'):.0f} / {median(ours, 'traces'):.0f}"
    return f"| {case} | {times[0]} | {times[1]} | {ratio('wall')} | {ratio('cpu')} | {traces} |"


if __name__ == "__main__":
    raise SystemExit(main())
