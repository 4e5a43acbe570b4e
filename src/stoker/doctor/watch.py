"""`stoker.Watch`: the ledger of any `fit`, `evaluate` or `predict`, Keras' or Stoker's, as a callback.

    model.fit(data, callbacks=[stoker.Watch()])

Importing this module imports Keras.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path

import keras

from stoker.doctor.attach.sites import KERAS_LOOP, Sites
from stoker.doctor.measure.experiment_options import experiment_seconds
from stoker.doctor.measure.run import MeasuredRun
from stoker.doctor.report import console
from stoker.errors import UsageError, check_local_path
from stoker.logs import LOGGER
from stoker.periodic import Every
from stoker.records import FindingKey, Record
from stoker.tf_internals.types import SummaryWriter

# How often to look for findings while batches run.
_LOOK_EVERY_S = 2.0


class Watch(keras.callbacks.Callback):
    """Measures a Keras loop from beginning to end.

    Args:
        show: print each finding to stderr when it appears, and the ledger at the end.
        log_dir: where to write scalars for TensorBoard: steps per second, the device's busy share, the seconds on each
            account. They are plotted against the number of steps.
        experiments: how long repairs may be timed when the loop has ended, such as `"60s"`, or `"off"`; by default a
            tenth of the loop's time, from 2 s to 20 s. Variables and random numbers are then restored.

    Under `stoker.fit`, the callback is called once per compiled call, not for every batch.

    After a loop, `record` is what `stoker run` would have saved. The record is also saved, for `stoker report`.
    """

    every_batch = False

    def __init__(
        self, show: bool = True, log_dir: str | None = None, experiments: str | float | None = None
    ) -> None:
        super().__init__()
        check_local_path(log_dir)
        self._experiments_s = experiment_seconds(experiments)
        if log_dir is not None and importlib.util.find_spec("tensorboard") is None:
            raise UsageError(
                "log_dir writes scalars for TensorBoard, which is missing: pip install tensorboard"
            )
        self.record: Record | None = None
        self._show = show
        self._log_dir = log_dir
        self._writer: SummaryWriter | None = None
        self._depth = 0
        self._thread = 0
        self._sites = Sites()
        self._known: set[FindingKey] = set()
        self._run: MeasuredRun | None = None
        self._looks = Every(seconds=_LOOK_EVERY_S)

    def on_train_begin(self, logs: object = None) -> None:
        """Begin measuring: `fit` begins."""
        self._begin("fit")

    def on_test_begin(self, logs: object = None) -> None:
        """Begin measuring: `evaluate` begins, or the validation inside `fit`."""
        self._begin("evaluate")

    def on_predict_begin(self, logs: object = None) -> None:
        """Begin measuring: `predict` begins."""
        self._begin("predict")

    def on_train_end(self, logs: object = None) -> None:
        """Draw the ledger at the end of a loop, unless a `fit` around the loop continues."""
        self._depth -= 1
        run = self._run
        if self._depth > 0 or run is None:
            return
        run.session.keras.leave_call()
        self.record = run.end(exit_code=0)
        self._run = None
        self._show_new(self.record)
        self._write(self.record)
        self._close_writer()
        self._keep(run, self.record)

    on_test_end = on_predict_end = on_train_end

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Show new findings now and then, at the end of a step."""
        if self._run is not None and self._looks.due():
            self._show_new(self._run.look())
            self._looks.mark()

    on_test_batch_end = on_predict_batch_end = on_train_batch_end

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        """Show new findings, and write the scalars."""
        if self._run is not None:
            current = self._run.look()
            self._show_new(current)
            self._write(current)

    def _begin(self, loop: str) -> None:
        if self._run is not None and loop == "evaluate" and self._is_running("fit"):
            self._depth += 1
            return
        # A loop that ended with an exception has not called its end hook.
        self._stop()
        self._depth = 1
        self._thread = threading.get_ident()
        self._known.clear()
        self._run = MeasuredRun.here(f"{Path(sys.argv[0]).name or 'python'} {loop}")
        self._run.record_steps(self._experiments_s, announced=self._show)
        self._run.begin(self._poll)
        self._run.session.keras.join_call()
        self._looks.mark()

    def _keep(self, run: MeasuredRun, record: Record) -> None:
        try:
            run.keep(record)
        except (UsageError, OSError) as error:
            # The loop itself succeeded: a record that cannot be saved must not make it fail.
            LOGGER.warning("could not save the record: %s", error)
        if self._show:
            console.show(record, run.path)

    def _stop(self) -> None:
        if self._run is not None:
            self._run.session.keras.leave_call()
            self._run.abandon()
            self._run = None
        self._close_writer()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _poll(self) -> None:
        """On the heartbeat's thread, poll the device, and notice a loop that ended with an exception."""
        run = self._run
        if run is None:
            return
        if self._is_running("fit", "evaluate", "predict"):
            run.session.poll()
        else:
            self._run = None
            run.abandon(wait=False)

    def _is_running(self, *loops: str) -> bool:
        """Return whether one of these loops is on the stack of the thread that began."""
        frame = sys._current_frames().get(self._thread)
        while frame is not None:
            if frame.f_code.co_name in loops and self._sites.kind_of(frame.f_code.co_filename) == KERAS_LOOP:
                return True
            frame = frame.f_back
        return False

    def _show_new(self, current: Record) -> None:
        new = [f for f in current.findings if f.key not in self._known]
        self._known.update(f.key for f in new)
        if self._show:
            for finding in new:
                console.show_finding(finding)

    def _write(self, current: Record) -> None:
        if self._log_dir is None:
            return
        import tensorflow as tf

        if self._writer is None:
            self._writer = tf.summary.create_file_writer(self._log_dir)
        scalars: dict[str, float | None] = {"steps_per_s": current.steps_per_s, "busy": current.device.busy}
        scalars |= {f"seconds/{account}": seconds for account, seconds in current.accounts.items()}
        with self._writer.as_default():
            for name, value in scalars.items():
                if value is not None:
                    tf.summary.scalar(f"stoker/{name}", value, step=current.steps)
        self._writer.flush()
