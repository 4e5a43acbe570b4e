"""Trains the same models as a worker of a job, or alone where there is none; prints what came of it as JSON."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import stoker
from stoker.train.execution.kept import traces_of
from stoker.train.planning import decide, trials
from stoker.train.workers.group import group_of

STRATEGY = stoker.strategy()
TASK = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
RANK = int(TASK.get("index", 0))
# Neither the batches nor the last one can be divided by two: 15, ..., 15, 11.
ROWS, BATCH = 101, 15
KERAS: dict[str, Any] = {"epochs": 3, "batch_size": BATCH, "verbose": 0}


def data() -> tuple[Any, Any]:
    x = np.random.default_rng(7).normal(size=(ROWS, 6)).astype("float32")
    return x, (x[:, :1] + x[:, 1:2] * x[:, 2:3] > 0).astype("float32")


def net(*middle: Any) -> Any:
    keras.utils.set_random_seed(3)
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((6,)), layers.Dense(16, activation="tanh"), *middle, layers.Dense(1, name="head")]
    )


def compiled(*middle: Any, optimizer: Any = None, metrics: Any = ()) -> Any:
    with STRATEGY.scope():
        model = net(*[make() for make in middle])
        model.compile(
            optimizer or keras.optimizers.Adam(0.02),
            keras.losses.BinaryCrossentropy(from_logits=True),
            metrics=[make() for make in metrics],
        )
    return model


def state(model: Any, **more: Any) -> dict[str, Any]:
    """The weights, for comparing with tolerance, and their bits."""
    weights = [weight.numpy() for weight in model.weights]
    bits = hashlib.blake2b(b"".join(weight.tobytes() for weight in weights)).hexdigest()
    return {"weights": [weight.ravel().tolist() for weight in weights], "bits": bits, **more}


def fitted() -> dict[str, Any]:
    model = compiled(metrics=[lambda: keras.metrics.AUC(from_logits=True, name="auc")])
    history = stoker.fit(model, *data(), validation_data=data(), **KERAS)
    return state(model, history=history.history, updates=int(model.optimizer.iterations.numpy()))


def normalized() -> dict[str, Any]:
    """BatchNorm over all rows of the batch, and with statistics of each replica."""
    layers = keras.layers
    # Not Adam, which makes steps of the rounding of a gradient that is zero: that of a bias before BatchNorm.
    together = compiled(
        lambda: layers.BatchNormalization(synchronized=True), optimizer=keras.optimizers.SGD(0.1)
    )
    stoker.fit(together, *data(), **KERAS)
    apart = compiled(layers.BatchNormalization)
    stoker.fit(apart, *data(), **{**KERAS, "epochs": 1}, steps_per_epoch=1, shuffle=False)
    return {"together": state(together), "apart": state(apart)}


def dropped() -> dict[str, Any]:
    model = compiled(lambda: keras.layers.Dropout(0.5, seed=5))
    stoker.fit(model, *data(), **KERAS)
    return state(model)


def threads() -> int:
    """Of this process."""
    return len(os.listdir("/proc/self/task"))


def called_back() -> dict[str, Any]:
    """Callbacks that slow down and stop, of a loss that gets no better; and one that notes where it runs."""
    model = compiled(optimizer=keras.optimizers.SGD(0.0))
    ran: list[int] = []
    callbacks = [
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=10.0),
        keras.callbacks.EarlyStopping("loss", patience=3, min_delta=10.0),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ran.append(threads())),
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.125 if epoch == 0 else rate),
    ]
    history = stoker.fit(
        model, *data(), **{**KERAS, "epochs": 20}, callbacks=callbacks, validation_data=data()
    )
    return state(
        model,
        epochs=len(history.history["loss"]),
        rate=float(model.optimizer.learning_rate.numpy()),
        ran=len(ran),
        threads=ran[-1] - ran[1] if ran else 0,
    )


def loss(model: Any, batch: Any, training: bool = True) -> Any:
    x, y = batch
    return tf.reduce_mean(tf.square(y - tf.cast(model(x, training=training), tf.float32)))


def trainer(**options: Any) -> Any:
    with STRATEGY.scope():
        model, optimizer = net(), keras.optimizers.AdamW(0.02)
    return stoker.Trainer(model, optimizer, loss, strategy=STRATEGY, **options)


def own_step() -> dict[str, Any]:
    made = trainer(clip=stoker.Clip(global_norm=0.1), accumulate=2, ema=0.9, freeze={"head": 5}, seed=1)
    history = made.fit(*data(), **KERAS, validation_data=data(), evaluate_every=4)
    found = state(made.model, history=history.history, evaluations=history.evaluations)
    with made.averaged_weights():
        found["averaged"] = state(made.model)
    found["evaluated"] = made.evaluate(*data(), batch_size=BATCH)
    return found


def broken() -> dict[str, Any]:
    """A row that is not a number, in the second replica's share: all stop with the weights of the step before."""
    x, y = data()
    x[3 * BATCH + BATCH - 1] = np.nan
    made = trainer()
    history = made.fit(x, y, **KERAS, shuffle=False)
    return state(made.model, events=history.events)


def overflown() -> dict[str, Any]:
    """An infinity on the second replica alone, in float16, through fit and through a step of one's own."""
    keras.config.set_dtype_policy("mixed_float16")
    x, y = data()
    x[BATCH - 1, 0] = 1e6
    model = compiled(optimizer=keras.optimizers.SGD(0.02))
    stoker.fit(model, x, y, **{**KERAS, "epochs": 1}, shuffle=False)
    made = trainer(loss_scale=stoker.LossScale(64.0))
    made.fit(x, y, **{**KERAS, "epochs": 1}, shuffle=False)
    keras.config.set_dtype_policy("float32")
    scaler = made.update_state.parts["model"].update.scaler
    return state(
        model,
        scale=float(model.optimizer.dynamic_scale.numpy()),
        updates=int(model.optimizer.iterations.numpy()),
        own=state(made.model, scale=float(scaler.scale)),
    )


def streamed() -> dict[str, Any]:
    """A pipeline of unknown length, which is one batch shorter on the second worker."""
    x, y = data()

    def batches() -> Any:
        for start in range(0, ROWS - 30 * RANK, BATCH):
            yield x[start : start + BATCH], y[start : start + BATCH]

    specs = (tf.TensorSpec([None, 6], tf.float32), tf.TensorSpec([None, 1], tf.float32))
    model = compiled()
    history = stoker.fit(
        model, tf.data.Dataset.from_generator(batches, output_signature=specs), epochs=2, verbose=0
    )
    return state(model, history=history.history, updates=int(model.optimizer.iterations.numpy()))


class Total(keras.metrics.Metric):
    """What all labels add up to."""

    def __init__(self) -> None:
        super().__init__(name="total")
        self.total = self.add_variable((), "zeros", name="total")

    def update_state(self, y: Any, _: Any, sample_weight: Any = None) -> None:
        self.total.assign(self.total + tf.reduce_sum(y))

    def result(self) -> Any:
        return tf.convert_to_tensor(self.total)


def divided() -> dict[str, Any]:
    """A reader of ours, which each worker reads a share of; rows of its own; files of its own."""
    x, y = data()
    reader = compiled()
    stoker.fit(reader, stoker.data.arrays((x, y), batch_size=16, shuffle=True, seed=4), epochs=3, verbose=0)
    numbers: Any = np.arange(96, dtype="float32")[:, None]
    rows = compiled(metrics=[Total])
    of_rows = stoker.fit(rows, x[:96], numbers, **{**KERAS, "batch_size": 16}, divide="rows").history
    for number in range(4):
        lines = [",".join(map(str, [*x[i], i])) for i in range(number * 24, number * 24 + 24)]
        Path(f"{RANK}.{number}.csv").write_text("\n".join(lines))
    files = tf.data.Dataset.list_files([f"{RANK}.{number}.csv" for number in range(4)], shuffle=False)
    parsed = tf.data.TextLineDataset(files).batch(16).map(lambda line: tf.io.decode_csv(line, [0.0] * 7))
    batches = parsed.map(lambda *columns: (tf.stack(columns[:6], 1), columns[6][:, None]))
    model = compiled(metrics=[Total])
    of_files = stoker.fit(model, batches, epochs=2, verbose=0, divide="files").history
    return {
        "reader": state(reader),
        "rows": state(rows, total=of_rows["total"]),
        "files": state(model, total=of_files["total"]),
    }


def auc() -> Any:
    return keras.metrics.AUC(from_logits=True, name="auc")


def compiled_alone() -> dict[str, Any]:
    """XLA over what a replica computes by itself: asked for, by fit and by a step of one's own; and tried."""
    layers, unshuffled = keras.layers, {**KERAS, "shuffle": False}
    model = compiled(layers.BatchNormalization, metrics=[auc])
    plain = stoker.fit(model, *data(), **unshuffled, validation_data=data())
    again = compiled(layers.BatchNormalization, metrics=[auc])
    asked = stoker.fit(again, *data(), **unshuffled, plan="step", validation_data=data())
    own = trainer(clip=stoker.Clip(global_norm=0.1))
    own.fit(*data(), **KERAS, plan="loop")
    graph: Any = next(entry for entry in traces_of(again)._loops.values()).loop.build().graph
    definitions = graph.as_graph_def().library.function
    synchronized = compiled(lambda: layers.BatchNormalization(synchronized=True))
    refused = stoker.fit(synchronized, *data(), **{**KERAS, "epochs": 1}, plan="step")
    return {
        "plain": state(model, history=plain.history),
        "asked": state(again, history=asked.history, jit=asked.plan.jit),
        "own": state(own.model),
        "compiled": sum(bool(one.attr["_XlaMustCompile"].b) for one in definitions),
        "refused": refused.plan.line(),
    }


def tried() -> dict[str, Any]:
    """XLA is tried on one worker, though the job is short: all hear what came of it, and go on from the same bits."""
    before = decide.FEWEST_STEPS_FOR_XLA, trials.SHORTEST_JOB_S
    decide.FEWEST_STEPS_FOR_XLA, trials.SHORTEST_JOB_S = 10, 0.0
    model = compiled(keras.layers.BatchNormalization)
    history = stoker.fit(model, *data(), **KERAS)
    decide.FEWEST_STEPS_FOR_XLA, trials.SHORTEST_JOB_S = before
    plan = history.plan
    return state(model, jit=plan.jit, reasons=list(plan.reasons), figures=sorted(plan.figures))


def scaled() -> dict[str, Any]:
    """A rate that is multiplied by the number of replicas, and one that was given so."""
    found = {}
    for name, rate, scale in (("scaled", 0.01, True), ("given", 0.01 * STRATEGY.num_replicas_in_sync, False)):
        model = compiled(optimizer=keras.optimizers.SGD(rate))
        history = stoker.fit(model, *data(), **KERAS, scale_rate=scale)
        found[name] = state(
            model, line=history.plan.line(), rate=float(model.optimizer.learning_rate.numpy())
        )
    return found


def asked() -> dict[str, Any]:
    """`stoker.evaluate` and `stoker.predict` of a model that was made under the strategy."""
    x, y = data()
    model = compiled(metrics=[lambda: keras.metrics.AUC(from_logits=True, name="auc")])
    before = stoker.evaluate(model, x, y, batch_size=BATCH, verbose=0, return_dict=True)
    stoker.fit(model, x, y, **KERAS)
    return {
        "before": before,
        "after": stoker.evaluate(model, x, y, batch_size=BATCH, verbose=0, return_dict=True),
        "listed": stoker.evaluate(model, x, y, batch_size=BATCH, verbose=0),
        "predicted": stoker.predict(model, x, batch_size=BATCH, verbose=0).ravel().tolist(),
    }


# They serve for as long as somebody holds them.
SERVERS: list[Any] = []


def served() -> dict[str, Any]:
    """Batches from a tf.data service, which the chief runs: every row goes to one of the workers."""
    address = Path("service")
    if RANK == 0:
        service = tf.data.experimental.service
        dispatcher = service.DispatchServer()
        SERVERS.extend(
            [dispatcher, service.WorkerServer(service.WorkerConfig(dispatcher.target.partition("://")[2]))]
        )
        address.with_suffix(".part").write_text(dispatcher.target)
        address.with_suffix(".part").rename(address)
    while not address.exists():
        time.sleep(0.01)
    x, _ = data()
    numbers: Any = np.arange(96, dtype="float32")[:, None]
    model = compiled(metrics=[Total])
    batches = tf.data.Dataset.from_tensor_slices((x[:96], numbers)).batch(16)
    history = stoker.fit(model, batches, epochs=2, verbose=0, data_service=address.read_text())
    return state(model, total=history.history["total"], updates=int(model.optimizer.iterations.numpy()))


def in_parts() -> dict[str, Any]:
    """The model of `fitted`, its batches in parts: at one go, and stopped after an epoch and called again."""

    def train(epochs: int, directory: str) -> Any:
        model = compiled(metrics=[lambda: keras.metrics.AUC(from_logits=True, name="auc")])
        history = stoker.fit(
            model, *data(), **{**KERAS, "epochs": epochs}, plan={"parts": 3}, checkpoint=directory
        )
        return state(model, history=history.history, parts=history.plan.parts)

    found = train(3, "at-one-go")
    train(1, "in-two")
    return {**found, "resumed": train(3, "in-two")}


def in_vain() -> dict[str, Any]:
    """The first worker waits for the second, which does not come. No collective works after that."""
    gave_up = Path("gave-up")
    if RANK > 0:
        while not gave_up.exists():
            time.sleep(0.01)
        return {}
    group: Any = group_of(STRATEGY)
    if group.alone:
        return {}
    group._patience.seconds = 0.5
    try:
        group.agree(steps=1)
    except tf.errors.DeadlineExceededError as error:
        gave_up.touch()
        return {"said": str(error)}
    return {}


def collectives() -> dict[str, int]:
    """In the traced steps of small models with everything on: how many sums over the workers each has."""
    model = compiled(keras.layers.BatchNormalization, metrics=[lambda: keras.metrics.AUC(from_logits=True)])
    stoker.fit(model, *data(), **KERAS)
    made = trainer(clip=stoker.Clip(global_norm=1.0), ema=0.9)
    made.fit(*data(), **KERAS)
    found = {}
    for kind, one in (("fit", model), ("trainer", made.model)):
        (entry,) = traces_of(one)._loops.values()
        graph: Any = entry.loop.build().graph
        found[kind] = sum(op.type.startswith("CollectiveReduce") for op in graph.get_operations())
    return found


CASES = (
    divided,
    fitted,
    normalized,
    dropped,
    called_back,
    own_step,
    broken,
    overflown,
    streamed,
    collectives,
    compiled_alone,
    tried,
    scaled,
    asked,
    served,
    in_parts,
    in_vain,
)


def main() -> None:
    wanted = sys.argv[1:]
    found = {case.__name__: case() for case in CASES if not wanted or case.__name__ in wanted}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
