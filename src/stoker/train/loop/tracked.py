"""A training run in the store: its parameters, values that the loop has read anyway, what went wrong, how it ended."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from stoker import clock
from stoker.tf_internals import keras_training
from stoker.tf_internals.types import Callbacks, Data, LogValue, Model
from stoker.tracking.store import address
from stoker.tracking.store.origins import note_origin
from stoker.tracking.store.surroundings import describe_optimizer, find_program
from stoker.tracking.store.tracking import TrackedRun, scalars
from stoker.train.checkpoint.saved_model import save_model
from stoker.train.program import TrainingProgram


class Tracked:
    """Keeps a training run in the store, as a context around it. Values of a call are logged at its last step.

    Raises:
        UsageError: the store's URL is invalid.
    """

    def __init__(
        self,
        program: TrainingProgram,
        params: Mapping[str, int | None],
        data: Mapping[str, Data],
        callbacks: Callbacks = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """Only the chief of a job records the run; `directory` holds the run's checkpoints."""
        self._directory = directory
        self._program = program
        self._callbacks = callbacks
        self._logged: set[str] = set()
        # Step and time after the first call, which compiled everything, and after the last.
        self._first: tuple[int, int] | None = None
        self._last = (0, 0)
        self._steps = 0
        self._batch_size = params.get("batch_size")
        store = address.find() if program.group.chief else None
        model = str(program.model.name)
        known = {} if store is None else {"model": model, **describe_optimizer(program.model), **params}
        self.run = TrackedRun(_name_run(program.model), known, store=store, kind="train")
        note_origin(program.model, self.run)
        for what, given in data.items():
            self.run.uses_data(given, name=what)

    def __enter__(self) -> Tracked:
        self.run.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        for event in self._program.course.events:
            self.run.log(int(event["step"]), {f"event/{event['event']}": float(event["loss"])})
        for file in (*_saved_models(self._callbacks), *self._save_model(error)):
            self.run.artifact(file, kind="model")
        self.run.change(steps=self._steps, **self._rates())
        self.run.__exit__(kind, error, trace)

    def _save_model(self, error: BaseException | None) -> list[Path]:
        """Save the whole model beside its checkpoints, unless the run trained nothing or failed."""
        is_saved = error is None or isinstance(error, KeyboardInterrupt)
        # Several workers may have to agree on the value of a variable; one worker alone would wait for the others.
        if self._directory is None or not self._steps or not is_saved or not self._program.group.alone:
            return []
        # For several models, callbacks see a stand-in for all of them.
        model = self._program.model
        file = save_model(model, self._directory) if isinstance(model, keras.Model) else None
        return [] if file is None else [file]

    def _rates(self) -> dict[str, float]:
        """Return steps and rows per second since the end of the first call, if there was a second one."""
        if self._first is None or self._last[0] <= self._first[0]:
            return {}
        seconds = (self._last[1] - self._first[1]) / 1e9
        rate = (self._last[0] - self._first[0]) / max(seconds, 1e-9)
        rows = {} if not self._batch_size else {"examples_per_s": rate * float(self._batch_size)}
        return {"steps_per_s": rate, **rows}

    def log_call(self, step: int, ran: int, values: Mapping[str, LogValue]) -> None:
        """Log a compiled call that ended at this step of the run."""
        self._steps += ran
        self._last = (step, clock.real_ns())
        self._first = self._first or self._last
        numbers = scalars(values)
        self._logged = set(numbers)
        self.run.log(step, numbers)

    def note_evaluation(self, step: int, logs: Mapping[str, LogValue]) -> None:
        """Log a validation inside an epoch."""
        self.run.log(step, {f"val_{name}": value for name, value in scalars(logs).items()})

    def log_epoch(self, step: int, epoch: int, logs: Mapping[str, LogValue]) -> None:
        """Log the results of an epoch, except those that its last call has logged."""
        numbers = {name: value for name, value in scalars(logs).items() if name not in self._logged}
        self.run.log(step, {**numbers, "epoch": epoch + 1})


def _name_run(model: Model) -> str:
    """Return the model's name if the user chose it, or the program's name if Keras made it up."""
    kind = keras_training.default_name(model)
    program, _ = find_program()
    is_chosen = not re.fullmatch(rf"{kind}(_\d+)?", str(model.name))
    # Notebooks and commands, including Stoker's own, do not run a program of the user's.
    is_nameless = not program.endswith(".py") or program in ("ipykernel_launcher.py", "__main__.py")
    return str(model.name) if is_chosen or is_nameless else program


def _saved_models(callbacks: Callbacks) -> list[Path]:
    """Return the models written by Keras' own callback; `stoker export RUN` can start from each of them."""
    listed = getattr(callbacks, "callbacks", callbacks)
    if not isinstance(listed, list | tuple):
        listed = [listed]
    savers = [one for one in listed if isinstance(one, keras.callbacks.ModelCheckpoint)]
    places = [Path(one.filepath) for one in savers if not one.save_weights_only]
    return [one for one in places if one.is_file()]
