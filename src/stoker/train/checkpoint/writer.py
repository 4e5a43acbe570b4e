"""Writing behind the training's back: one file at a time, and what went wrong is raised where training can see it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from stoker.train.checkpoint.options import CheckpointError


class BackgroundWriter:
    """Runs one job at a time in a thread.

    Every job has its own thread and is not a daemon: a program that ends without closing still gets its file
    finished, and one that closes waits for nothing else.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether the last job is still at work."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, job: Callable[[], None]) -> None:
        """Run `job` in the background; the one before must have ended.

        Raises:
            CheckpointError: the one before failed.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name="stoker-checkpoint")
        self._thread.start()

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again in the training's thread
            self._failure = error

    def check(self) -> None:
        """Raise what went wrong, once.

        Raises:
            CheckpointError: the last write failed.
        """
        if self.busy or self._failure is None:
            return
        failure, self._failure = self._failure, None
        if isinstance(failure, CheckpointError):
            raise failure
        raise CheckpointError(f"saving a checkpoint failed: {failure!r}") from failure

    def wait(self) -> None:
        """Wait for the last job.

        Raises:
            CheckpointError: it failed.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()
