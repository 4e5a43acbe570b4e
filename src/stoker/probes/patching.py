"""Replacing functions of TensorFlow and Keras while the program runs, and putting them back.

A probe is a set of patches that live and die together. If measuring fails, the probe is disabled: its patches
are taken out, the report says so once, and the program never notices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.probes.recorder import Recorder

_MISSING = object()


class Probe:
    """Base of all probes. A subclass patches in `attach` and gives itself a `name`."""

    name = ""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.active = True
        self._undo: list[Callable[[], None]] = []

    def attach(self) -> None:
        """Put the patches in. TensorFlow (or Keras) is imported by now."""
        raise NotImplementedError

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set `owner.name` to `make(original)`, to be undone by `detach`."""
        own = vars(owner).get(name, _MISSING)
        replacement = make(getattr(owner, name))
        setattr(owner, name, replacement)

        def undo() -> None:
            # Someone may have patched over us since; then ours stays below theirs, inactive.
            if vars(owner).get(name) is replacement:
                if own is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)

        self._undo.append(undo)

    def on_detach(self, undo: Callable[[], None]) -> None:
        """Run `undo` when the probe is taken out."""
        self._undo.append(undo)

    def detach(self) -> None:
        """Take the patches out, last first."""
        self.active = False
        while self._undo:
            self._undo.pop()()

    def fail(self, error: BaseException) -> None:
        """A fault of ours: this probe stops, the program goes on."""
        if self.active:
            self.detach()
            self.recorder.note(
                f"the {self.name} probe failed and was disabled ({type(error).__name__}: {error}); "
                "its figures stop there"
            )
