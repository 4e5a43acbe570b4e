"""`stoker.fit`: `model.fit`, with many steps in one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import strategy_of
from stoker.tf_internals.types import Callbacks, ClassWeight, Data, History, Model, Verbose
from stoker.train import first_look
from stoker.train.checkpoint.options import CheckpointLike
from stoker.train.custom.keras_model import keras_program, keras_replicas_program
from stoker.train.custom.program import Division
from stoker.train.execution.model_kinds import check_compiled, check_model
from stoker.train.execution.own_methods import calls_own, is_own, is_set_by_user, original_arguments
from stoker.train.explaining import FitData
from stoker.train.planning.plan import PlanLike
from stoker.train.preparing import prepare_run
from stoker.train.program import TrainingProgram
from stoker.train.request import FitRequest
from stoker.train.servers import ServedTraining
from stoker.train.tracebacks import filter_errors
from stoker.train.workers.group import Group, group_of, is_replicated
from stoker.train.workers.strategy import check_strategy


@filter_errors
@calls_own
def fit(
    model: Model,
    x: Data = None,
    y: Data = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: Verbose = "auto",
    callbacks: Callbacks = None,
    validation_split: float = 0.0,
    validation_data: Data = None,
    shuffle: bool | str = True,
    class_weight: ClassWeight = None,
    sample_weight: Data = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int | Sequence[int] = 1,
    *,
    plan: PlanLike = None,
    checkpoint: CheckpointLike = None,
    divide: str = "share",
    data_service: str | None = None,
    scale_rate: bool | str = False,
    memory: int | str | None = None,
    tune: bool = False,
    check: bool = False,
) -> History:
    """Train a compiled Keras model: the arguments, the history and the numbers of `model.fit`, much faster.

    If the model has its own `fit`, that method is called, and its call of Keras' `fit` is replaced by this function.

    Args:
        model: a compiled Keras model. The other positional arguments are those of `model.fit`.
        plan: how to run, instead of letting Stoker decide: a `stoker.Plan`, a dict, or words such as "resident, loop".
        checkpoint: a directory, or a `stoker.Checkpoint`; after a crash, the same call continues where it was.
        divide: how the workers of a job share the data: each takes its "share" of every batch, or its own "rows" or
            "files".
        data_service: the address of a tf.data service dispatcher, such as "grpc://host:5050", to run the pipeline on.
        scale_rate: on several replicas, multiply the learning rate by their number (True) or its square root ("sqrt").
            Use it if `batch_size` grows with the replicas.
        memory: how much of a GPU's memory a step may need, such as "14GiB", or "auto" for what there is. If a batch
            needs more, it is cut into as few parts as fit, and the numbers stay those of the whole batch.
        tune: put the tf.data pipeline `x` through `stoker.tune` first; `plan="tuned"` does the same.
        check: check labels, loss, inputs and memory before the first step. Raise an error for what cannot be right and
            warn of what may be a mistake, each in one line with its remedy.

    Returns:
        Keras' `History`; its `plan` attribute says how the training ran and why.

    Raises:
        ArgumentError: an argument is invalid; it is a `ValueError`.
    """
    arguments = locals()
    validated = bool(validation_split) or validation_data is not None
    check_model(model, "fit")
    check_compiled(model, "fit")
    check_strategy([strategy_of(model)])
    _check_overrides(model, validated)
    if check:
        first_look.look(
            model, x, y, batch_size, validated, 0.0 if validation_data is not None else validation_split
        )
    request = FitRequest.from_call(arguments, original=original_arguments(model, "fit"))
    data = FitData(model, x, y, batch_size)
    if not check:
        data.look_briefly()
    try:
        return _train(model, request, data)
    except (tf.errors.OpError, ValueError, TypeError) as error:
        explained = data.explain_error(error)
        if explained is None:
            raise
        raise explained from None


def _train(model: Model, request: FitRequest, data: FitData) -> History:
    strategy = model.distribute_strategy
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return ServedTraining(model, request).train()
    if not is_replicated(strategy):
        program = replace(keras_program(model), watch=data.explain_nan)
        return prepare_run(request, Group(), lambda _: program).train()

    def make_program(division: Division) -> TrainingProgram:
        return replace(keras_replicas_program(model, division), watch=data.explain_nan)

    return prepare_run(request, group_of(strategy), make_program).train()


def _check_overrides(model: Model, validated: bool) -> None:
    """Refuse a method of the model's own that `model.fit` would call and a compiled loop would not."""
    for name, function, instead in (
        ("make_train_function", "train_function", "train_step"),
        ("make_test_function", "test_function", "test_step"),
    ):
        if name == "make_test_function" and not validated:
            continue
        for method, holds in ((name, is_own(model, name)), (function, is_set_by_user(model, function))):
            if holds:
                raise ArgumentError(
                    f"{type(model).__name__} overrides {method}, which stoker.fit would not call: "
                    f"use model.fit, or override {instead}"
                )
