"""From a call of `fit` to a training run: which data each worker reads, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Callbacks, Data, Dataset
from stoker.train.custom.program import Division
from stoker.train.execution.feeding import memory, sources
from stoker.train.loop.run import TrainingRun
from stoker.train.planning.plan import Plan, parse
from stoker.train.program import TrainingProgram
from stoker.train.request import FitRequest, rate_factor
from stoker.train.workers.group import Group
from stoker.train.workers.shares import Share, check_distributed, divide_data, read_from_service


def prepare_run(
    request: FitRequest, group: Group, make_program: Callable[[Division], TrainingProgram]
) -> TrainingRun:
    """Return the run that a request asks for.

    Args:
        request: the call of `fit`.
        group: the workers that train together.
        make_program: returns the program to train, given how the work is divided among replicas.

    Raises:
        ArgumentError: an argument is invalid.
    """
    request = request.check()
    if not group.alone:
        check_swaps(request.callbacks)
    options = {name: getattr(request, name) for name in ("class_weight", "checkpoint", "data_service")}
    check_distributed(request.x, request.validation_data, options, group)
    given = request.list_given_data()
    request, plan = _prepare_pipeline(request)
    data: tuple[Data, Data, Data] = (request.x, request.y, request.sample_weight)
    if request.validation_split and request.validation_data is None:
        data, held_out = sources.split(*data, request.validation_split)
        request = replace(request, validation_data=held_out)
    share = _share_data(request, data, group)
    factor = rate_factor(request.scale_rate, group.replicas)
    if factor != 1:
        plan = plan.because(f"rates times {factor:.4g} for {group.replicas} replicas")
    if not group.chief:
        # A job wants files, prints and the effects of callbacks only once.
        request = replace(request, callbacks=None, verbose=0)
    return TrainingRun(
        make_program(Division(share.apart, factor)),
        request,
        sources.source(
            share.x,
            share.y,
            share.sample_weight,
            batch_size=share.batch_size,
            steps_per_epoch=request.steps_per_epoch,
            shuffle=request.shuffle,
            class_weight=request.class_weight,
        ),
        plan=plan,
        share=share,
        given=given,
    )


def _prepare_pipeline(request: FitRequest) -> tuple[FitRequest, Plan]:
    """Return the request with its input tuned or kept in memory, and the plan that says so."""
    plan = parse(request.plan)
    if request.tune or plan.tuned:
        x, gained, figures = _tune(request)
        return replace(request, x=x), plan.because(gained, tuned=True, figures={**plan.figures, **figures})
    kept = _keep_in_memory(request)
    return (request, plan) if kept is None else (replace(request, x=kept), plan.because(REASON))


def _keep_in_memory(request: FitRequest) -> Dataset | None:
    """Return the data that the model's own `fit` prepared, with a cache; None if a cache would not help."""
    # A checkpoint would have to hold the cache, and only a whole pass fills it.
    if (
        request.checkpoint is not None
        or request.epochs - request.initial_epoch < 2
        or request.steps_per_epoch
    ):
        return None
    return _cache_prepared(request.x, request.original)


def _tune(request: FitRequest) -> tuple[Dataset, str, dict[str, float]]:
    """Return the tuned pipeline, and the gain from tuning in words and figures."""
    if not isinstance(request.x, tf.data.Dataset):
        raise ArgumentError(f"tune=True needs x to be a tf.data.Dataset, not {type(request.x).__name__}")
    if request.checkpoint is not None:
        raise ArgumentError(
            "tune=True cannot be used with checkpoint=: what the tuner changes may differ from run to run, and the "
            "place in one pipeline means nothing in another"
        )
    # The tuner is imported only when it is asked for.
    from stoker.data.tuning.tuner import tune

    tuned = tune(request.x)
    report = tuned.tuning
    rates = {"input_before_per_s": report.before, "input_after_per_s": report.after}
    figures = {name: round(rate, 1) for name, rate in rates.items() if rate is not None}
    if not report.changes:
        return tuned, "the input was left as it is: nothing makes it faster", figures
    changed = ", ".join(change.name for change in report.changes)
    return tuned, f"the input was tuned, {report.gain:.1f}x ({changed})", figures


def _share_data(request: FitRequest, data: tuple[Data, Data, Data], group: Group) -> Share:
    """Return the data that this worker reads."""
    if request.data_service is None:
        return divide_data(*data, request.batch_size, request.divide, group)
    if request.divide != "share":
        raise ArgumentError(
            f"divide={request.divide!r} and data_service= both divide the data among the workers: use only one of them"
        )
    return read_from_service(*data, request.data_service, group, checkpoint=request.checkpoint is not None)


def check_swaps(callbacks: Callbacks) -> None:
    """Refuse callbacks that swap weights: the chief alone calls callbacks, so only its own weights would be swapped."""
    listed = getattr(callbacks, "callbacks", callbacks) or []
    for one in listed if isinstance(listed, Iterable) else [listed]:
        if isinstance(one, keras.callbacks.SwapEMAWeights):
            raise ArgumentError(
                "SwapEMAWeights swaps the weights of one worker alone: leave it out in a job of several workers; "
                "the averages of use_ema=True are in the model after the last epoch"
            )


REASON = "the prepared data is kept in memory"


def _cache_prepared(x: Data, original: Mapping[str, object] | None) -> tf.data.Dataset | None:
    """Return the pipeline with a cache after the last stage that is sure to give the same elements in every epoch.

    Args:
        x: the data that the model's own `fit` passes on.
        original: the arguments of the model's own `fit`, by name.

    Returns:
        None if there is nothing to gain, or no proof that not a bit changes.
    """
    made_here = original is not None and not isinstance(original.get("x"), tf.data.Dataset)
    if not made_here or not isinstance(x, tf.data.Dataset) or int(x.cardinality()) < 0:
        return None
    # The tuner is imported only here, and where it is asked for.
    from stoker.data.tuning.changes import PipelineChange, TuningRequest, caching
    from stoker.data.tuning.rebuilding import CannotRebuild

    try:
        proposals = list(caching.proposals(x, TuningRequest(memory.room_for_data())))
    except CannotRebuild:
        return None
    return next((one.pipeline for one in proposals if isinstance(one, PipelineChange)), None)
