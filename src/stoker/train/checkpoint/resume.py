"""The keeper: what a training run saves, and how the same call goes on from it, bit for bit."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable
from typing import Any

import keras

from stoker.attach import announced
from stoker.train.checkpoint import iterator_state, variables
from stoker.train.checkpoint.callback_state import callbacks_state, restore_callbacks
from stoker.train.checkpoint.options import Checkpoint, CheckpointWarning
from stoker.train.checkpoint.saver import Saver
from stoker.train.feeding.feeds import Streamed, StreamedRows
from stoker.train.loop.epoch_steps import Pace
from stoker.train.loop.program import Program
from stoker.train.planning.plan import Plan


class Keeper:
    """Saves a run while it trains; knows the progress it began with."""

    def __init__(self, checkpoint: Checkpoint, program: Program, graphs: Iterable[Any]) -> None:
        """Takes the checkpoint's directory and restores the newest good state.

        Args:
            checkpoint: where and how often.
            program: built: every variable exists.
            graphs: the traced steps, for variables only they know of.
        """
        traced = list(graphs)
        for graph in traced:
            for op in variables.random_ops_out_of_reach(graph):
                warnings.warn(
                    f"the step uses {op}, whose random state TensorFlow cannot save: after a resume the numbers "
                    "differ; use keras.random with a SeedGenerator, or tf.random.stateless_*",
                    CheckpointWarning,
                    stacklevel=2,
                )
        loose = {variable.ref(): variable for graph in traced for variable in _as_traced(graph)}
        extra = {f"step/{number}": variable for number, variable in enumerate(loose.values())}
        self.every_steps = checkpoint.every_steps
        self.directory = checkpoint.directory
        self._before: int | None = None
        self.saver = Saver(checkpoint, program.variables(extra), program.fingerprint)
        with contextlib.ExitStack() as undo:
            # A checkpoint of another run is refused; the directory must be free again then.
            undo.callback(self.saver.close)
            self.progress = self.saver.restore()
            undo.pop_all()

    def put_back(self, pace: Pace | None, callbacks: keras.callbacks.CallbackList) -> dict[str, Any]:
        """Bring everything to where the checkpoint was taken: after the hooks that reset and begin.

        Args:
            pace: moved to its place; None when no more data is wanted.
            callbacks: get back what they remember.
        """
        progress = self.progress
        assert progress is not None
        self.saver.restore(before=self._before)
        self._before = None
        restore_callbacks(_kept(callbacks), progress["callbacks"])
        if pace is not None:
            # The order matters: the epochs are repeated from the random state the program began with.
            pace.repeat_epochs(progress["pace"])
        variables.restore_host_random_state(progress["random"])
        if pace is not None:
            pace.seek(progress["pace"], self.saver.blobs.get("iterator"), begun=progress["begun"])
        return progress

    def rewind(self, before: int) -> bool:
        """Go back to the newest checkpoint before this step; False if there is none."""
        progress = self.saver.restore(before=before)
        if progress is not None:
            self.progress, self._before = progress, before
        return progress is not None

    def save_if_due(self, step: int, **progress: Any) -> None:
        """Save when it is time."""
        if self.saver.due(step):
            self.save(step, **progress)

    @announced.region(announced.SAVE)
    def save(
        self,
        step: int,
        *,
        pace: Pace,
        callbacks: keras.callbacks.CallbackList,
        plan: Plan,
        wait: bool = False,
        **progress: Any,
    ) -> None:
        """Save now: `progress` is what the engine knows beside its position."""
        blobs = {}
        if isinstance(pace.feed, Streamed) and not isinstance(pace.feed, StreamedRows):
            blob = iterator_state.capture(pace.feed.iterator)
            if blob is not None:
                blobs["iterator"] = blob
        content = {
            **progress,
            "step": step,
            "pace": pace.position(),
            "callbacks": callbacks_state(_kept(callbacks)),
            "random": variables.host_random_state(),
            "plan": plan.to_json(),
        }
        self.saver.save(step, content, blobs, wait=wait)


def _as_traced(graph: Any) -> list[Any]:
    """A graph's variables in the order of tracing: `graph.variables` comes from a set, in another order every time."""
    by_handle = {id(variable.handle): variable for variable in graph.variables}
    return [by_handle[id(outer)] for outer, _ in graph.captures if id(outer) in by_handle]


def _kept(callbacks: keras.callbacks.CallbackList) -> list[Any]:
    return [one for one in callbacks.callbacks if not isinstance(one, keras.callbacks.ProgbarLogger)]
