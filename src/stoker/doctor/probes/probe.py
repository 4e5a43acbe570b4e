"""What every probe is: a set of patches that writes into the books of one run.

If measuring fails, the probe is disabled: its patches are taken out, the report says so once, and the program never
notices.
"""

from __future__ import annotations

from stoker.doctor.attach.patching import Patches
from stoker.doctor.probes.recorder import Recorder


class Probe(Patches):
    """Base of all probes. A subclass patches in `attach` and gives itself a `name`."""

    name = ""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def fail(self, error: BaseException) -> None:
        """A fault of ours: this probe stops, the program goes on."""
        if self.active:
            self.detach()
            self.recorder.note(
                f"the {self.name} probe failed and was disabled ({type(error).__name__}: {error}); "
                "its figures stop there"
            )
