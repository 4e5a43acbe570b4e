"""The settings that `stoker run` passes to the program's process, as one line in the environment."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

from stoker.doctor.diagnosis.record import RunFacts


@dataclasses.dataclass(frozen=True)
class ChildSettings:
    """The settings that `stoker run` passes to the program's process."""

    record: str
    start_ns: int
    facts: RunFacts
    user_root: str | None
    # Whether Stoker has set TF_CPP_MIN_LOG_LEVEL, and must remove it once TensorFlow has read it.
    log_level_is_ours: bool
    # The arguments of `software_gpu.enable`, if the program gets a software GPU.
    software_gpu: Mapping[str, object] | None = None
    # The URL of the store for the program's own runs.
    store: str | None = None
    # Seconds for timing repairs when the program has ended; None for the default time, 0 for no experiments.
    experiments_s: float | None = 0.0
    # Whether to say on stderr that repairs are being timed.
    announces: bool = True
    # Whether to save the recorded steps beside the record.
    keeps_step: bool = False

    def to_json(self) -> str:
        """Return the settings as one line for the environment."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ChildSettings:
        """Read back what `to_json` wrote."""
        values = json.loads(text)
        values["facts"] = RunFacts(**values["facts"])
        return cls(**values)
