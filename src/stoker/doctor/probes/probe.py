"""The base of all probes: a set of patches that writes into the books of one run.

If measuring fails, the probe is disabled: its patches are removed, the report says so once, and the program never
notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from stoker.doctor.attach.patching import Patches
from stoker.doctor.probes.measurements import ProbePart
from stoker.doctor.probes.recorder import Recorder

P = ParamSpec("P")
T = TypeVar("T")
# An object that a probe keeps, and the names of its fields that grow while the probe measures: counts and nanoseconds.
Growing = tuple[object, tuple[str, ...], tuple[str, ...]]
# The fields of a tally that grow.
GROWING_TALLY = (("count", "bytes", "same", "between"), ("ns", "wait_ns", "lost_ns"))


class Probe(Patches):
    """Base of all probes. A subclass has a `name` and overrides whichever methods it needs."""

    name = ""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def attach(self) -> None:
        """Patch TensorFlow, which has just been imported."""

    def attach_to_keras(self) -> None:
        """Patch Keras, which has just been imported."""

    def poll(self) -> None:
        """Look at something from outside the program. Called several times a second on the heartbeat's thread."""

    def list_growing(self) -> Iterable[Growing]:
        """Return what grows only while the pausable patches are in, and is estimated while they are out."""
        return ()

    def list_growing_tallies(self, name: str) -> Iterable[Growing]:
        """Return the tallies of a name, in the form of `list_growing`."""
        return [(tally, *GROWING_TALLY) for tally in self.recorder.tallies_of(name).values()]

    def measure(self, ended: bool) -> ProbePart | None:
        """Return what is known now, for detectors and the record. Any thread may call; `ended` at the program's end."""
        return None

    def close(self) -> None:
        """Stop whatever must not outlive the program, which is ending."""

    def call_safely(self, measure: Callable[P, T], *args: P.args, **kwds: P.kwargs) -> T | None:
        """Call code of ours. A failure must not reach the program: it disables the probe, and None is returned."""
        try:
            return measure(*args, **kwds)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is our fault
            self.fail(error)
            return None

    def fail(self, error: BaseException) -> None:
        """Stop this probe after a failure of its own. The program continues."""
        if self.active:
            self.detach()
            self.recorder.note(
                f"the {self.name} probe failed and was disabled ({type(error).__name__}: {error}); "
                "its figures stop there"
            )
