"""`stoker.evaluate`: the results of `model.evaluate`, with many batches in one compiled call.

Losses and metrics stay in their variables on the device; the host reads them once per call. After a `stoker.fit` with
validation data the loop already exists, and nothing is traced. In a job, where Keras cannot evaluate at all, the
workers share the rows, and all of them get the results of all rows.
"""

from __future__ import annotations

from contextlib import nullcontext

import keras

from stoker.doctor.attach import announced
from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import TensorFlowTrainer, flatten_results
from stoker.tf_internals.types import Callbacks, Data, EvaluateResult, Verbose
from stoker.tracking.store.tracking import scalars
from stoker.train.custom.keras_model import keras_program, keras_replicas_program
from stoker.train.execution import hooks
from stoker.train.execution.feeding import sources
from stoker.train.execution.feeding.streamed import is_distributed
from stoker.train.execution.kept import traces_of
from stoker.train.execution.loop import Logs
from stoker.train.execution.model_kinds import check_compiled, check_model, must_keras_run
from stoker.train.execution.own_methods import calls_own
from stoker.train.inference.evaluation import Evaluation
from stoker.train.inference.inputs import check_positive
from stoker.train.inference.tracked import track_run
from stoker.train.program import TrainingProgram
from stoker.train.workers.group import group_of
from stoker.train.workers.shares import check_distributed


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
    """`model.evaluate(...)`: same arguments, same numbers, which the store keeps too.

    In a job, all workers call it, each with all of the data. Every worker gets the results of all rows.
    """
    check_model(model, "evaluate")
    group = group_of(model.distribute_strategy)
    if group.alone and (must_keras_run(model, "evaluate") or is_distributed(x)):
        return TensorFlowTrainer.evaluate(
            model,
            x,
            y,
            batch_size=batch_size,
            verbose=verbose,
            sample_weight=sample_weight,
            steps=steps,
            callbacks=callbacks,
            return_dict=return_dict,
        )
    check_compiled(model, "evaluate")
    check_positive("batch_size", batch_size)
    check_positive("steps", steps)
    check_distributed(x, None, {}, group)
    data = (x, y, sample_weight)
    source = sources.source(
        *data,
        batch_size=batch_size,
        steps_per_epoch=steps,
        empty="there is nothing to evaluate: x has no rows",
    )
    if group.alone:
        program, jit = keras_program(model), "step" if model.jit_compile else "none"
    else:
        program, jit = keras_replicas_program(model), "none"
    logs = evaluate_program(
        program,
        source,
        data,
        jit=jit,
        callbacks=callbacks,
        verbose=verbose if group.alone else None,
        build=True,
    )
    return logs if return_dict else flatten_results(model, logs)


def evaluate_program(
    program: TrainingProgram,
    source: sources.DataSource,
    data: tuple[Data, ...],
    *,
    jit: str = "none",
    callbacks: Callbacks = None,
    verbose: Verbose | None = None,
    build: bool = False,
) -> Logs:
    """Return the results of a program's test steps over data; the chief keeps them in the store.

    Args:
        program: the program to evaluate.
        source: the data to evaluate on.
        data: the same data, as the caller gave it.
        jit: what XLA compiles.
        callbacks: notified of the test and its batches, on the chief.
        verbose: how Keras' bar shows progress; None for no bar, so that only the callbacks are notified.
        build: whether to make variables before the first step, since tracing on a replica cannot make any.
    """
    model, group, feed = program.model, program.group, source.feed_to_test()
    try:
        if build:
            program.loops.build(feed.spec())
        steps = source.steps_per_epoch or feed.steps
        listed = None
        if group.chief and (callbacks is not None or verbose is not None):
            listed = hooks.list_callbacks(model, callbacks, verbose or 0, steps)
        loop = program.loops.loop("test_step", feed, jit)
        evaluation = Evaluation(
            program.course, loop, feed, source, callbacks=listed, agreed=group.agree_on_fewest
        )
        store = (
            track_run("evaluate", model, data, batch_size=source.batch_size) if group.chief else nullcontext()
        )
        with announced.region(announced.LOOP, batch_size=0), store as run:
            logs = evaluation.run()
            if evaluation.steps_ran == 0:
                raise ArgumentError("there is nothing to evaluate: the data had no batch")
            if run is not None:
                run.log(0, scalars(logs))
        return logs
    finally:
        traces_of(model).release()
        feed.close()
