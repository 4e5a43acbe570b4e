"""Resuming from a checkpoint, bit for bit: what a training run reads at its start, restores, and saves.

resume = Resume(checkpoint)             # takes the directory, reads the newest good checkpoint: once
resume.plan                             # how the run before went about it
resume.begin(state, graphs, fingerprint) # once everything is built: the variables get their values
resume.put_back(epoch_steps, callbacks) # after the hooks that reset and begin: everything else too
resume.save(step, ...)                  # when it is time: resume.is_due(step)
resume.close()
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, cast

import keras

from stoker import clock
from stoker.doctor.attach import announced
from stoker.errors import CheckpointError
from stoker.goodput import accounts, journal
from stoker.periodic import Every
from stoker.tf_internals.types import Callback, Graph, LogValue, Variable
from stoker.train import variables
from stoker.train.checkpoint import job
from stoker.train.checkpoint.bucket import bucket_of
from stoker.train.checkpoint.callback_state import callbacks_state, restore_callbacks
from stoker.train.checkpoint.directory import CheckpointDirectory
from stoker.train.checkpoint.options import Checkpoint, CheckpointWarning
from stoker.train.checkpoint.saved import WAY_OUT, Saved
from stoker.train.checkpoint.saver import Saver
from stoker.train.execution.epoch_steps import EpochPosition, EpochSteps
from stoker.train.execution.feed import HostRandomState, host_random_state, restore_host_random_state
from stoker.train.execution.feeding import iterator_state
from stoker.train.execution.feeding.streamed import Streamed, StreamedRows
from stoker.train.execution.parts import PART_SIZE
from stoker.train.planning.plan import Plan
from stoker.train.program import CheckpointedState
from stoker.train.workers.copies import part_name
from stoker.train.workers.group import Group
from stoker.train.workers.shares import Share
from stoker.units import quantity

# The fields that every version has saved of a run, and their types.
_PROGRESS: dict[str, type | tuple[type, ...]] = {
    "plan": dict,
    "pace": dict,
    "callbacks": (dict, list),
    "random": dict,
    "step": int,
    "epoch": int,
    "logs": dict,
}


# The first checkpoint is due after this time at the latest. The intervals then double until they are as long as
# `every`, so that a run that is killed early loses at most half of its time.
FIRST_SAVE_S = 5.0
# Until then, saving holds up training for at most one part in this many.
_WORK_PER_SAVE = 50


class EarlySaves:
    """The early saves, before the first interval of `every` is over."""

    def __init__(self, every_s: float | None) -> None:
        self._every_s = every_s or 0.0
        self._timer = Every(seconds=FIRST_SAVE_S)

    def due(self) -> bool:
        """Return whether it is time to save; never, once intervals are as long as `every`."""
        return self._timer.seconds is not None and self._timer.seconds < self._every_s and self._timer.due()

    def mark(self, held_up_s: float) -> None:
        """Note that a checkpoint was taken and held training up for this long."""
        if self._timer.seconds is not None:
            self._timer.seconds = max(2 * self._timer.seconds, _WORK_PER_SAVE * held_up_s)
        self._timer.mark()


class RunProgress(TypedDict):
    """The position and progress of a run, apart from its variables."""

    step: int
    epoch: int
    begun: bool
    """Whether that was inside an epoch."""
    stop_training: bool
    logs: dict[str, LogValue]
    pace: EpochPosition
    """Named as in the first version, whose files can still be read."""
    callbacks: dict[str, Any]
    random: HostRandomState
    plan: dict[str, Any]
    program: dict[str, Any]


class Resume:
    """A run's checkpoints: the one from which it resumes, and those that it writes."""

    def __init__(
        self, checkpoint: Checkpoint, group: Group | None = None, share: Share | None = None
    ) -> None:
        """Take the directory and read the newest good checkpoint. In a job, the chief does so.

        Raises:
            CheckpointError: the directory is in use or cannot be written.
        """
        self.checkpoint = checkpoint
        self.group = group or Group()
        self._apart = share is not None and share.apart
        # If each worker has a place of its own, it is saved with the worker; or it is found by counting, without the
        # iterator.
        self._own_place = self._apart and share is not None and not share.again
        self._saver: Saver | None = None
        self._early = EarlySaves(checkpoint.every_seconds)
        self._state: CheckpointedState | None = None
        self._damaged: set[Path] = set()
        self._directory: CheckpointDirectory | None = None
        if self.group.chief:
            self._directory = CheckpointDirectory(checkpoint.local_directory, bucket_of(checkpoint))
            try:
                self._saved = job.read_newest(self._directory, self._damaged, self.group)
            except BaseException:
                self._directory.release()
                raise
        else:
            self._saved = job.read_chosen(checkpoint, self.group)

    def _check_progress(self) -> None:
        """Check that the checkpoint has every field of a run, each with its type.

        Raises:
            CheckpointError: a field is missing or has another type.
        """
        found = self._saved
        for name, kind in _PROGRESS.items():
            if found is not None and not isinstance(found.progress.get(name), kind):
                raise CheckpointError(
                    f"{found.path} is damaged: it does not say the run's {name!r}; {WAY_OUT}"
                )

    @property
    def progress(self) -> RunProgress | None:
        """The run's progress in the checkpoint; None if there is nothing to resume."""
        return None if self._saved is None else cast(RunProgress, self._saved.progress)

    def pin_plan(self, plan: Plan) -> Plan:
        """Fill in the fields that this call leaves open with the decisions of an earlier process of this run."""
        if self.progress is None:
            return plan
        self._check_progress()
        decided = self.progress["plan"]
        return replace(
            Plan(feed=decided["feed"], jit=decided["jit"], figures=decided["figures"]),
            # Checkpoints of versions that did not fuse have no such field.
            fused=plan.fused if plan.fused is not None else bool(decided.get("fused")),
            reasons=("as the checkpoint has it",),
            feed=plan.feed or decided["feed"],
            jit=plan.jit or decided["jit"],
            steps_per_call=plan.steps_per_call,
            parts=plan.parts or decided.get("parts"),
        )

    def begin(self, state: CheckpointedState, graphs: Iterable[Graph], fingerprint: str) -> None:
        """Give the variables the saved values.

        Args:
            state: the state of what is trained, all of whose variables exist by now.
            graphs: the traced steps, which may use variables that `state` lacks.
            fingerprint: readable text, which must equal that of the checkpoint.

        Raises:
            CheckpointError: the checkpoint belongs to another model, or to a run with other arguments.
        """
        self._state = state
        traced = list(graphs)
        for graph in traced:
            _warn_of_random_ops(graph)
        loose = {variable.ref(): variable for graph in traced for variable in _list_variables_in_order(graph)}
        extra = {f"step/{number}": variable for number, variable in enumerate(loose.values())}
        self._saver = self._saver_of(state.variables(extra), fingerprint)
        self._saver.replicas = self.group.replicas
        if self._saved is not None:
            if self._own_place and self._saved.replicas != self.group.replicas:
                raise CheckpointError(
                    f"{self._saved.path} was saved by {quantity(self._saved.replicas, 'replica')}, this run has "
                    f"{self.group.replicas}: with divide='rows' or 'files' a job must resume with the same number; "
                    "with 'share' it may differ"
                )
            self._put_into_variables(self._saved)

    def _saver_of(self, variables: Mapping[str, Variable], fingerprint: str) -> Saver:
        given = (self.checkpoint, variables, fingerprint)
        if not self.group.chief:
            return job.WorkerSaver(*given, group=self.group)
        owned: dict[str, Any] = {"directory": self._directory, "damaged": self._damaged}
        return (
            Saver(*given, **owned) if self.group.alone else job.ChiefSaver(*given, **owned, group=self.group)
        )

    def put_back(
        self, epoch_steps: EpochSteps | None, callbacks: keras.callbacks.CallbackList
    ) -> RunProgress:
        """Restore everything but the variables; call it after the hooks that reset state.

        Args:
            epoch_steps: moved to its saved place; None if no more data is wanted.
            callbacks: get their state back.
        """
        found = self._saved
        assert found is not None
        progress = cast(RunProgress, found.progress)
        self._put_into_variables(found)
        restore_callbacks(_drop_progress_bars(callbacks), progress["callbacks"])
        if epoch_steps is not None:
            # The order matters: the epochs are repeated from the random state with which the program began.
            epoch_steps.repeat_epochs(progress["pace"])
        restore_host_random_state(progress["random"])
        if epoch_steps is not None:
            epoch_steps.seek(progress["pace"], found.blobs.get(self._place_name), begun=progress["begun"])
        self.saver.use_memory_of(found)
        self._saved = None
        return progress

    def _put_into_variables(self, found: Saved) -> None:
        self.saver.put_back(found)
        if self._state is not None:
            self._state.note_restored()

    @property
    def _place_name(self) -> str:
        return part_name("iterator", self.group.rank if self._own_place else 0)

    def rewind(self, before: int) -> bool:
        """Go back to the newest checkpoint before this step; False if there is none."""
        found = self.saver.newest(before)
        if found is not None:
            self._put_into_variables(found)
            self._saved = found
        return found is not None

    def is_due(self, step: int) -> bool:
        """Return whether it is time to save; in a job, the chief decides."""
        return self.saver.due(step) or (self.group.chief and self._early.due())

    @announced.region(announced.SAVE)
    def save(
        self,
        step: int,
        *,
        epoch_steps: EpochSteps,
        callbacks: keras.callbacks.CallbackList,
        plan: Plan,
        wait: bool = False,
        **progress: object,
    ) -> None:
        """Save now; `progress` is the state of the epochs apart from their position."""
        begin = clock.real_ns()
        blobs = {}
        feed = epoch_steps.feed
        counted = self._apart and not self._own_place
        saves = (self.group.chief and not counted) or self._own_place
        if saves and isinstance(feed, Streamed) and not isinstance(feed, StreamedRows):
            blob = iterator_state.capture(feed.iterator)
            if blob is not None:
                blobs[self._place_name] = blob
        content = {
            **progress,
            "step": step,
            # The name is that of the first version, whose files must remain readable.
            "pace": epoch_steps.position(),
            "callbacks": callbacks_state(_drop_progress_bars(callbacks)),
            "random": host_random_state(),
            "plan": plan.to_json(),
        }
        with journal.phase(accounts.SAVING):
            self.saver.save(step, content, blobs, wait=wait)
        self._early.mark((clock.real_ns() - begin) / 1e9)

    @property
    def saver(self) -> Saver:
        assert self._saver is not None, "begin() comes first"
        return self._saver

    def close(self, error: BaseException | None = None) -> None:
        """Wait for the current write and release the directory.

        Raises:
            CheckpointError: the last write failed, and there is no `error` that matters more.
        """
        if self._saver is None:
            if self._directory is not None:
                self._directory.release()
            return
        if error is not None:
            self._saver.give_up()
        try:
            self._saver.close()
        except CheckpointError:
            if error is None:
                raise


def _warn_of_random_ops(graph: Graph) -> None:
    for op in variables.find_unsavable_random_ops(graph):
        warnings.warn(
            f"the step uses {op}, whose random state TensorFlow cannot save: after a resume the numbers "
            "differ; use keras.random with a SeedGenerator, or tf.random.stateless_*",
            CheckpointWarning,
            stacklevel=3,
        )


def _list_variables_in_order(graph: Graph) -> list[Variable]:
    """Return a graph's variables in the order of tracing; `graph.variables` has them in the random order of a set.

    The size of a batch's parts is left out, because the plan holds it.
    """
    saved = [one for one in graph.variables if not one.name.startswith(PART_SIZE)]
    by_handle = {id(variable.handle): variable for variable in saved}
    return [by_handle[id(outer)] for outer, _ in graph.captures if id(outer) in by_handle]


def _drop_progress_bars(callbacks: keras.callbacks.CallbackList) -> list[Callback]:
    return [one for one in callbacks.callbacks if not isinstance(one, keras.callbacks.ProgbarLogger)]
