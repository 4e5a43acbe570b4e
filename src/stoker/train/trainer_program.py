"""A trainer as the engine sees it: a program with steps, metrics, stops, evaluations and state."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import keras

from stoker.train.loop import Logs, Step
from stoker.train.program import Program
from stoker.train.progress import show
from stoker.train.state import named_variables
from stoker.train.update.watching import Trouble

if TYPE_CHECKING:
    from stoker.train.trainer import Trainer


class TrainerProgram(Program):
    """Runs a trainer's steps, and deals on the host with what they noted."""

    def __init__(self, trainer: Trainer, *, evaluate_every: int | None = None, verbose: bool = True) -> None:
        self.trainer = trainer
        self.model = trainer.callback_model
        self.stop_points = evaluate_every
        self.events: list[dict[str, Any]] = []
        self._verbose = verbose

    def step(self, kind: str) -> Step:
        # Compiled loops are kept for the model's next run: they must not keep the trainer alive.
        owner = weakref.ref(self.trainer)
        name = "run_train_step" if kind == "train_step" else "run_test_step"

        def run(batch: Any) -> Logs:
            method: Callable[[Any], Logs] = getattr(owner(), name)
            return method(_plain(batch))

        return run

    def stamp(self) -> object:
        return self.trainer

    def reset(self) -> None:
        self.trainer.reset_training_means()
        self.trainer.reset_test_means()

    def end_epoch(self) -> None:
        self.trainer.flush()

    def jit_refusal(self) -> str | None:
        return "several replicas" if self.trainer.replicas.distributed else None

    def after_call(self, step: int, logs: Mapping[str, float]) -> str | None:
        trouble, at, loss = self.trainer.workings.halt.read()
        if trouble is Trouble.NONE:
            return None
        self._note("stop", at, loss, "training stopped, with the weights before it")
        return "stop"

    def variables(self) -> Mapping[str, Any]:
        return named_variables(self.model, extra=self.trainer.state)

    def _note(self, what: str, step: int, loss: float, done: str) -> None:
        self.events.append({"event": what, "step": step, "loss": loss, "done": done})
        if self._verbose:
            show(f"step {step}: the loss was {loss:.4g}; {done}")


class Models(keras.Model):  # type: ignore[misc]
    """Several models as one, for callbacks and checkpoints."""

    def __init__(self, models: Mapping[str, Any], optimizers: Mapping[str, Any]) -> None:
        super().__init__()
        self.models = list(models.values())
        self.optimizers = list(optimizers.values())
        self.optimizer = self.optimizers[0]
        self.built = True


def _plain(batch: Any) -> Any:
    """What the user's step gets: x where only x was given, else the tuple or dict as it came."""
    return batch[0] if isinstance(batch, tuple) and len(batch) == 1 else batch
