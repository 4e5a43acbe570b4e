"""`stoker.evaluate`, in a job too: there the workers share the rows, and all get the results of all rows.

Keras cannot evaluate a model of several workers; the validation of `stoker.fit` can, and is what runs here. A model of
one process is evaluated by `stoker.train.inference`.
"""

from __future__ import annotations

import keras

from stoker.doctor.attach import announced
from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import flatten_results
from stoker.tf_internals.types import Callbacks, Data, EvaluateResult, Model
from stoker.tracking.store.tracking import scalars
from stoker.train.custom.keras_model import keras_replicas_program
from stoker.train.execution.feeding import sources
from stoker.train.execution.kept import kept
from stoker.train.execution.model_kinds import check_model
from stoker.train.execution.own_methods import calls_own
from stoker.train.inference import evaluate as of_one_process
from stoker.train.inference.arrays import check_positive
from stoker.train.inference.callbacks import Verbose
from stoker.train.inference.evaluation import Evaluation
from stoker.train.inference.tracked import tracked
from stoker.train.workers.distributed_data import check_distributed
from stoker.train.workers.group import group_of


@calls_own
def evaluate(
    model: keras.Model,
    x: Data = None,
    y: Data = None,
    batch_size: int | None = None,
    verbose: Verbose = "auto",
    sample_weight: Data = None,
    steps: int | None = None,
    callbacks: Callbacks = None,
    return_dict: bool = False,
) -> EvaluateResult:
    """`model.evaluate(...)`: same arguments, same numbers, which are kept in the store too.

    In a job all workers call it, each with all of the data; the results are those of all rows, on every worker.
    """
    check_model(model, "evaluate")
    if group_of(model.distribute_strategy).alone:
        return of_one_process.evaluate(
            model, x, y, batch_size, verbose, sample_weight, steps, callbacks, return_dict
        )
    if not model.compiled:
        raise ArgumentError(
            "the model is not compiled. You must call `compile()` before stoker.evaluate: "
            "model.compile(optimizer, loss)"
        )
    check_positive("batch_size", batch_size)
    check_positive("steps", steps)
    check_distributed(x, None, {}, group_of(model.distribute_strategy))
    logs = _in_a_job(model, (x, y, sample_weight), batch_size, steps, callbacks)
    return logs if return_dict else flatten_results(model, logs)


def _in_a_job(
    model: Model,
    data: tuple[Data, Data, Data],
    batch_size: int | None,
    steps: int | None,
    callbacks: Callbacks,
) -> dict[str, float]:
    program = keras_replicas_program(model)
    source = sources.source(
        *data,
        batch_size=batch_size,
        steps_per_epoch=steps,
        empty="there is nothing to evaluate: x has no rows",
    )
    feed = source.feed_to_test()
    try:
        # Metrics are made before a replica is traced, which may not make any.
        program.loops.build(feed.spec())
        evaluation = Evaluation(
            program.course,
            program.loops.loop("test_step", feed, "none"),
            feed,
            callbacks=_of_the_chief(model, callbacks) if program.group.chief else None,
            steps=source.steps_per_epoch,
            adapter=source.adapter,
            agreed=program.group.fewest,
        )
        with announced.region(announced.LOOP, batch_size=0):
            if not program.group.chief:
                return evaluation.run()
            with tracked("evaluate", model, data, batch_size=source.batch_size) as run:
                logs = evaluation.run()
                run.log(0, scalars(logs))
                return logs
    finally:
        kept(model).release()
        feed.close()


def _of_the_chief(model: Model, callbacks: Callbacks) -> Callbacks:
    if callbacks is None or isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    return keras.callbacks.CallbackList(callbacks, model=model)
