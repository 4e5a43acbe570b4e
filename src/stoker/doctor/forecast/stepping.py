"""Counting a program's training steps, and ending the program when enough are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from stoker.doctor.attach.patching import Patches
from stoker.tf_internals import eager, functions, keras_optimizers
from stoker.tf_internals.types import CompiledFunction, GradientTape, Optimizer

# If a call of a compiled function takes longer, it may hold a whole loop, so its steps are watched from outside.
_LONG_CALL_S = 3.0
_LOOK_S = 0.2
# Mixed precision skips steps whose gradients are infinite. This many calls per step are enough in any case.
_CALLS_PER_STEP = 4


class StepLimit(Patches):
    """Calls `finish` when the program has made its steps.

    If the program has a Keras optimizer, the optimizer's own count decides; it is read when a compiled function returns
    or gradients have been applied. Otherwise the calls that compute gradients are counted.
    """

    def __init__(self, steps: int, finish: Callable[[], None]) -> None:
        super().__init__()
        self._steps, self._finish = steps, finish
        self.optimizers: dict[int, Optimizer] = {}
        self._calls = 0
        self._tapes = 0
        self._depth = 0
        self._call_began: float | None = None

    def attach(self) -> None:
        """Put the patches in, and begin to watch for calls that take long."""
        import tensorflow as tf

        self.replace(*functions.function_call(), self._watch_call)
        self.replace(*keras_optimizers.application(), self._watch_optimizer)
        self.replace(tf.GradientTape, "__enter__", self._watch_tape)
        threading.Thread(target=self._watch_long_calls, daemon=True).start()

    def count(self) -> int:
        """Return how many steps were made, as far as is known."""
        made = [int(one.iterations.numpy()) for one in list(self.optimizers.values()) if one.built]
        return max(made, default=self._calls)

    def _look(self) -> None:
        calls_enough = self._calls >= self._steps * (_CALLS_PER_STEP if self.optimizers else 1)
        if (self.optimizers and self.count() >= self._steps) or calls_enough:
            self._finish()

    def _watch_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(function: CompiledFunction, *args: Any, **kwds: Any) -> Any:
            if not eager.is_eager() or self._depth:
                return original(function, *args, **kwds)
            self._depth += 1
            self._call_began = time.monotonic()
            try:
                result = original(function, *args, **kwds)
            finally:
                self._depth -= 1
                self._call_began = None
            if self._tapes:
                self._calls += 1
                self._look()
            return result

        return call

    def _watch_optimizer(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def apply(optimizer: Optimizer, *args: Any, **kwds: Any) -> Any:
            result = original(optimizer, *args, **kwds)
            self.optimizers[id(optimizer)] = optimizer
            if eager.is_eager() and not self._depth:
                self._calls += 1
                self._look()
            return result

        return apply

    def _watch_tape(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(tape: GradientTape) -> Any:
            if eager.is_eager() and not self._depth and not self.optimizers:
                # A loop that updates its variables by itself has begun a new step, so the previous step is done.
                self._calls = self._tapes
                self._look()
            self._tapes += 1
            return original(tape)

        return enter

    def _watch_long_calls(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            began = self._call_began
            is_long = began is not None and time.monotonic() - began > _LONG_CALL_S
            if is_long and self.optimizers and self.count() >= self._steps:
                self._finish()
