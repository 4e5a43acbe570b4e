"""A pytest plug-in under which the tests of Keras, and of packages built on it, train through `stoker.fit`.

    PYTHONPATH=benchmarks pytest -p through_stoker --through fit,evaluate <tests>

`Model.fit` (and, if asked for, `evaluate` and `predict`) becomes the call of Stoker's. What Stoker itself hands back to
Keras goes to Keras.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

VERBS = ("fit", "evaluate", "predict")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--through", default="fit", help=f"which of {', '.join(VERBS)} go through Stoker")


def pytest_configure(config: pytest.Config) -> None:
    for marker in ("requires_trainable_backend", "skipif_backend"):
        config.addinivalue_line("markers", f"{marker}: Keras' own")
    wanted = [word for word in config.getoption("--through").split(",") if word]
    for verb in wanted:
        if verb not in VERBS:
            raise pytest.UsageError(f"--through {verb}: there are {', '.join(VERBS)}")
        _redirect(verb)


def _redirect(verb: str) -> None:
    # Not before the option is read: TensorFlow is slow to import.
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

    import stoker

    setattr(TensorFlowTrainer, verb, _through(getattr(stoker, verb), getattr(TensorFlowTrainer, verb)))


def _through(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    busy: set[int] = set()

    @functools.wraps(theirs)
    def verb(self: Any, *args: Any, **kwds: Any) -> Any:
        if id(self) in busy or "_use_cached_eval_dataset" in kwds:
            return theirs(self, *args, **kwds)
        busy.add(id(self))
        try:
            return ours(self, *args, **kwds)
        finally:
            busy.discard(id(self))

    return verb
