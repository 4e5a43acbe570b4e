"""Prove a bundle in a new process. It knows nothing of this one, so what it can do with a bundle, any process can.

    with Prover() as prover:        # the process begins to import TensorFlow ...
        ...                         # ... while the models are written
        prover.load(saved_model=p)  # it begins to load one ...
        ...                         # ... while the rest of the bundle is written
        prover.prove(directory)

The process reads the paths from its standard input; if that ends first, there is nothing to prove. `prepare` starts the
process early, before an export that is sure to come, while other work goes on.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import stoker
from stoker.printing import print_answer
from stoker.serve.bundle import BundleError, Proof
from stoker.tf_internals.types import SavedModelObject

_ANSWER = "stoker-proof "
_PROVE, _ALLOW = "prove", "allow"
# Keras imports these where they are installed; no bundle needs them, and they take 40 % of the import time.
_NOT_NEEDED = ("matplotlib", "pandas", "sklearn")


class Prover:
    """A new process that loads a bundle and checks that it gives its recorded answers."""

    def __init__(self) -> None:
        # Put only Stoker on its path: modules that only this process can import must not help the proof.
        home = str(Path(stoker.__file__).parents[1])
        code = f"import sys; sys.path[0] = {home!r}; from {__name__} import main; sys.exit(main())"
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        pipe = subprocess.PIPE
        # The process gets a session of its own, so that Ctrl-C in the terminal reaches only the exporting process.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process still waits for something to prove."""
        return self._process.poll() is None

    def __enter__(self) -> Prover:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dismiss()

    def dismiss(self) -> None:
        """End the process, because there is nothing to prove."""
        if self.is_alive:
            self._process.kill()
            self._process.communicate()

    def load(self, **models: Path) -> None:
        """Have the process load models of the bundle ahead of the proof, by their names in `proof.LOADERS`."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `prove` will report that the process is gone
            for name, path in models.items():
                self._process.stdin.write(f"{name} {path.resolve()}\n")
            self._process.stdin.flush()

    def prove(self, directory: Path, allow_ops: Iterable[str] = ()) -> Proof:
        """Have the bundle proven, and wait for the result.

        Args:
            directory: the bundle.
            allow_ops: operations that the bundle may contain although they reach outside the model.

        Returns:
            The findings.

        Raises:
            BundleError: the bundle does not give its recorded answers.
        """
        printed, complaints = self._process.communicate(
            f"{_ALLOW} {','.join(allow_ops)}\n{_PROVE} {directory.resolve()}\n"
        )
        for line in printed.splitlines():
            if line.startswith(_ANSWER):
                found = json.loads(line.removeprefix(_ANSWER))
                if "fault" in found:
                    raise BundleError(found["fault"])
                return Proof(rows=found["rows"], keras=found["keras"])
        last = (complaints.strip().splitlines() or ["it said nothing"])[-1]
        raise BundleError(
            f"a new process could not load the bundle (exit code {self._process.returncode}): {last}"
        )


_prepared: list[Prover] = []


def prepare() -> None:
    """Start the process for the next export of this process."""
    _prepared.append(Prover())


def dismiss_prepared() -> None:
    """End the processes that no export has used."""
    while _prepared:
        _prepared.pop().dismiss()


def next_prover() -> Prover:
    """Return the prepared process if it is still alive, otherwise a new one."""
    while _prepared:
        prover = _prepared.pop()
        if prover.is_alive:
            return prover
    return Prover()


def main() -> int:
    """Prove the bundles named on standard input, and print one line for each result."""
    for name in _NOT_NEEDED:
        sys.modules[name] = None  # type: ignore[assignment]
    # Do the slow imports before there is something to prove.
    importlib.import_module("keras")
    import tensorflow as tf

    from stoker.serve.proof import LOADERS, prove
    from stoker.serve.safety.opening import Trust

    tf.constant(0)  # makes TensorFlow find the devices

    early: dict[str, SavedModelObject] = {}
    trust = Trust()
    for line in sys.stdin:
        what, _, path = line.rstrip("\n").partition(" ")
        if what == _PROVE:
            break
        if what == _ALLOW:
            trust = Trust(tuple(path.split(",")))
            continue
        with contextlib.suppress(Exception):  # `prove` will report what is wrong with the model
            early[what] = LOADERS[what](Path(path))
    else:
        return 0
    try:
        found = json.dumps(prove(Path(path), early=early, trust=trust))
    except BundleError as error:
        found = json.dumps({"fault": str(error)})
    print_answer(f"{_ANSWER}{found}")
    # Exit without waiting for TensorFlow to shut itself down.
    os._exit(0)
