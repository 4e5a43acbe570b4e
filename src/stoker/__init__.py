"""Stoker keeps TensorFlow programs at full throughput.

    $ stoker run train.py          # where every second goes, and which line spends it

    with stoker.guard():           # a hidden sync, copy or retrace raises at its line
        train()

Importing this package never imports TensorFlow: names are resolved when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.compilations import keep_compilations
from stoker.lazy import import_when_used
from stoker.version import __version__

if TYPE_CHECKING:
    from stoker import data, recipes
    from stoker.data.tuning.tuner import tune
    from stoker.doctor import software_gpu
    from stoker.doctor.guard import (
        CopyError,
        EagerOpError,
        GuardError,
        GuardWarning,
        RetraceError,
        SyncError,
        allow,
        bind,
        guard,
    )
    from stoker.doctor.notebook import load_ipython_extension
    from stoker.doctor.watch import Watch
    from stoker.serve.batching import BusyError, DeadlineError
    from stoker.serve.bundle import Bundle, BundleError, BundleWarning
    from stoker.serve.export.writing import export
    from stoker.serve.predictor import Predictor
    from stoker.tracking.log import Log
    from stoker.tracking.store.table import runs
    from stoker.tracking.store.tracking import track
    from stoker.train.checkpoint.options import Checkpoint, CheckpointError, CheckpointWarning
    from stoker.train.evaluate import evaluate
    from stoker.train.fit import fit
    from stoker.train.fit_many import fit_many
    from stoker.train.inference.predict import predict
    from stoker.train.planning.plan import Plan
    from stoker.train.search import search_with_keras_tuner, search_with_optuna
    from stoker.train.trainer import Trainer
    from stoker.train.update.averaging import EMA
    from stoker.train.update.balancing import Balance
    from stoker.train.update.clipping import Clip
    from stoker.train.update.patterns import Times
    from stoker.train.update.penalties import gradient_penalty
    from stoker.train.update.scaling import LossScale
    from stoker.train.update.watching import Spike
    from stoker.train.workers.strategy import strategy

_HOMES = {
    "data": "stoker.data",
    "recipes": "stoker.recipes",
    "software_gpu": "stoker.software_gpu",
    "Balance": "stoker.train.update.balancing",
    "Bundle": "stoker.serve.bundle",
    "BundleError": "stoker.serve.bundle",
    "BundleWarning": "stoker.serve.bundle",
    "BusyError": "stoker.serve.batching",
    "Checkpoint": "stoker.train.checkpoint.options",
    "CheckpointError": "stoker.train.checkpoint.options",
    "CheckpointWarning": "stoker.train.checkpoint.options",
    "Clip": "stoker.train.update.clipping",
    "CopyError": "stoker.doctor.guard",
    "DeadlineError": "stoker.serve.batching",
    "EMA": "stoker.train.update.averaging",
    "EagerOpError": "stoker.doctor.guard",
    "GuardError": "stoker.doctor.guard",
    "GuardWarning": "stoker.doctor.guard",
    "Log": "stoker.tracking.log",
    "LossScale": "stoker.train.update.scaling",
    "Plan": "stoker.train.planning.plan",
    "Predictor": "stoker.serve.predictor",
    "RetraceError": "stoker.doctor.guard",
    "Spike": "stoker.train.update.watching",
    "SyncError": "stoker.doctor.guard",
    "Times": "stoker.train.update.patterns",
    "Trainer": "stoker.train.trainer",
    "Watch": "stoker.doctor.watch",
    "allow": "stoker.doctor.guard",
    "bind": "stoker.doctor.guard",
    "evaluate": "stoker.train.evaluate",
    "export": "stoker.serve.export.writing",
    "fit": "stoker.train.fit",
    "fit_many": "stoker.train.fit_many",
    "gradient_penalty": "stoker.train.update.penalties",
    "guard": "stoker.doctor.guard",
    "load_ipython_extension": "stoker.doctor.notebook",
    "predict": "stoker.train.inference.predict",
    "search_with_keras_tuner": "stoker.train.search",
    "search_with_optuna": "stoker.train.search",
    "strategy": "stoker.train.workers.strategy",
    "tune": "stoker.data.tuning.tuner",
    "runs": "stoker.tracking.store.table",
    "track": "stoker.tracking.store.tracking",
}

__all__ = [
    "EMA",
    "Balance",
    "Bundle",
    "BundleError",
    "BundleWarning",
    "BusyError",
    "Checkpoint",
    "CheckpointError",
    "CheckpointWarning",
    "Clip",
    "CopyError",
    "DeadlineError",
    "EagerOpError",
    "GuardError",
    "GuardWarning",
    "Log",
    "LossScale",
    "Plan",
    "Predictor",
    "RetraceError",
    "Spike",
    "SyncError",
    "Times",
    "Trainer",
    "Watch",
    "__version__",
    "allow",
    "bind",
    "data",
    "evaluate",
    "export",
    "fit",
    "fit_many",
    "gradient_penalty",
    "guard",
    "load_ipython_extension",
    "predict",
    "recipes",
    "runs",
    "search_with_keras_tuner",
    "search_with_optuna",
    "software_gpu",
    "strategy",
    "track",
    "tune",
]

__getattr__ = import_when_used(__name__, _HOMES)
# TensorFlow reads the place before the first line that uses Stoker runs.
keep_compilations()


def __dir__() -> list[str]:
    return sorted(__all__)
