"""Each member's callbacks and history, which receive that member's logs, and which members have stopped."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import keras

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Callback, Callbacks, Verbose
from stoker.train.custom.keras_model import KerasCourse
from stoker.train.loop.progress import ProgressBar
from stoker.train.many.members import Config, Member
from stoker.train.many.program import ManyLoops, select_member_logs

MemberCallbacks = Callbacks | Callable[[Config], Callbacks]

# Keras' own callbacks that look only at logs, and those that look at the model but do not change it.
_OF_LOGS = (
    keras.callbacks.CSVLogger,
    keras.callbacks.History,
    keras.callbacks.RemoteMonitor,
    keras.callbacks.TerminateOnNaN,
)
_WRITERS = (
    keras.callbacks.BackupAndRestore,
    keras.callbacks.CSVLogger,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.TensorBoard,
)


def read_callbacks(given: MemberCallbacks, members: Sequence[Member]) -> list[list[Callback]]:
    """Return each member's callbacks: those that a function returns for its config, or copies of those in a list.

    Raises:
        ArgumentError: a callback in a list would write all members' files to one place.
    """
    if callable(given) and not isinstance(given, keras.callbacks.Callback):
        return [_list_callbacks(given(one.config)) for one in members]
    listed = _list_callbacks(given)
    for one in listed:
        if isinstance(one, _WRITERS):
            raise ArgumentError(
                f"callbacks: every member's {type(one).__name__} would write to the same place: give a function, such "
                "as callbacks=lambda config: [...], that makes them for one member"
            )
    return [copy.deepcopy(listed) for _ in members]


def _list_callbacks(given: Callbacks) -> list[Callback]:
    if given is None:
        return []
    listed = list(given) if isinstance(given, Iterable) else [given]
    for one in listed:
        if not isinstance(one, keras.callbacks.Callback):
            raise ArgumentError(f"callbacks: give objects of keras.callbacks.Callback, not {one!r}")
        if isinstance(one, keras.callbacks.BackupAndRestore):
            raise ArgumentError(
                "callbacks: BackupAndRestore restores one model: use checkpoint= for all members"
            )
    return listed


class ManyCallbacks(keras.callbacks.CallbackList):
    """The callbacks of all members, as the training run calls them."""

    def __init__(
        self, loops: ManyLoops, given: Sequence[list[Callback]], verbose: Verbose, epochs: int
    ) -> None:
        super().__init__(model=loops.model)
        self._loops = loops
        self._lists: dict[int, keras.callbacks.CallbackList] = {}
        for member, own in zip(loops.members, given, strict=True):
            listed = keras.callbacks.CallbackList(
                own, add_history=True, model=member.model, verbose=verbose, epochs=epochs, steps=None
            )
            self._lists[member.number] = listed
            member.history = member.model.history
            member.model.stop_training = False
        self._bar = self._make_bar(verbose, epochs)
        # The callbacks that are asked whether they need every batch, and that a checkpoint keeps.
        self.callbacks = [one for listed in self._lists.values() for one in listed.callbacks]
        self._look_at_models = any(not _is_of_logs(one) for one in self.callbacks)
        self._change_models = any(not (_is_of_logs(one) or _only_reads(one)) for one in self.callbacks)

    def _make_bar(self, verbose: Verbose, epochs: int) -> ProgressBar | None:
        if verbose == 0:
            return None
        bar = ProgressBar()
        bar.set_model(self._loops.model)
        bar.set_params({"verbose": 1 if verbose == "auto" else verbose, "epochs": epochs, "steps": None})
        return bar

    @property
    def _active(self) -> list[Member]:
        return [one for one in self._loops.members if one.number in self._loops.active]

    def _tell(self, hook: str, *args: object, logs: Mapping[str, Any] | None = None) -> None:
        """Call a hook of every active member's callbacks, after bringing the state they look at up to date."""
        if self._look_at_models:
            self._loops.write_back()
        for member in self._active:
            own = None if logs is None else select_member_logs(logs, member)
            getattr(self._lists[member.number], hook)(*args, own)
        if self._change_models:
            self._loops.note_changed()

    def on_train_begin(self, logs: Any = None) -> None:
        self._tell("on_train_begin")
        if self._bar is not None:
            self._bar.on_train_begin()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._tell("on_epoch_begin", epoch)
        if self._bar is not None:
            self._bar.on_epoch_begin(epoch)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._wants("on_train_batch_begin"):
            self._tell("on_train_batch_begin", batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._wants("on_train_batch_end"):
            self._tell("on_train_batch_end", batch, logs=logs)
            for member in self._active:
                if member.model.stop_training:
                    # Inside an epoch, the member's rows of the stack train on, so this is the last chance to keep its
                    # state.
                    self._lists[member.number].on_epoch_end(
                        self._epoch_of(member), select_member_logs(logs, member)
                    )
                    self._retire(member, select_member_logs(logs, member))
        if self._bar is not None:
            self._bar.on_train_batch_end(batch, _summarise_best(logs))

    def on_test_begin(self, logs: Any = None) -> None:
        self._tell("on_test_begin")

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._wants("on_test_batch_begin"):
            self._tell("on_test_batch_begin", batch)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._wants("on_test_batch_end"):
            self._tell("on_test_batch_end", batch, logs=logs)

    def on_test_end(self, logs: Any = None) -> None:
        self._tell("on_test_end", logs=logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._tell("on_epoch_end", epoch, logs=logs)
        for member in self._active:
            if member.model.stop_training:
                self._retire(member, select_member_logs(logs, member))
        if self._bar is not None:
            self._bar.on_epoch_end(epoch, _summarise_best(logs))

    def on_train_end(self, logs: Any = None) -> None:
        self._tell("on_train_end", logs=logs)
        if self._bar is not None:
            self._bar.on_train_end()

    def _retire(self, member: Member, logs: Mapping[str, Any]) -> None:
        """Do what a member's own `fit` would do at the end, because the member has asked to stop."""
        self._loops.retire(member)
        KerasCourse(member.model).finish()
        self._lists[member.number].on_train_end(logs)

    def restored_epoch(self, member: Member) -> int | None:
        """Return the epoch whose weights an EarlyStopping has restored in the member's model; None if none has."""
        for one in self._lists[member.number].callbacks:
            if (
                isinstance(one, keras.callbacks.EarlyStopping)
                and one.restore_best_weights
                and one.stopped_epoch > 0
            ):
                return int(one.best_epoch)
        return None

    def _epoch_of(self, member: Member) -> int:
        return len(member.history.epoch)

    def _wants(self, hook: str) -> bool:
        return any(
            getattr(type(one), hook) is not getattr(keras.callbacks.Callback, hook) for one in self.callbacks
        )


def _is_of_logs(callback: Callback) -> bool:
    if type(callback) is keras.callbacks.EarlyStopping:
        return not callback.restore_best_weights
    return type(callback) in _OF_LOGS


def _only_reads(callback: Callback) -> bool:
    # EarlyStopping writes only at the end of training, when nothing is trained any more.
    readers = (keras.callbacks.EarlyStopping, keras.callbacks.ModelCheckpoint, keras.callbacks.TensorBoard)
    return type(callback) in readers


def _summarise_best(logs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return logs for the bar: the lowest loss of the members, and how many are still training."""
    found: dict[str, Any] = {}
    for name in ("loss", "val_loss"):
        prefix = "val_" if name == "val_loss" else ""
        values = [
            value
            for key, value in (logs or {}).items()
            if key.endswith("/loss") and key.startswith("val_") == bool(prefix)
        ]
        if values:
            found[f"best_{name}"] = min(values)
    return found
