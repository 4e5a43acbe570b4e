"""The user's request, independent of the scheduler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from stoker.doctor.measure.launch import Target
from stoker.errors import UsageError
from stoker.launch.hosts import JobSize
from stoker.launch.limits import LaunchLimits

NO_SPARES = "--standby does not work here: the scheduler itself restarts the workers of this job"


@dataclass(frozen=True)
class JobRequest:
    """A program and how to run it; `size` is None if the user did not give one."""

    target: Target
    limits: LaunchLimits
    size: JobSize | None = None
    name: str = ""
    ledger: bool = False
    standby: bool = False

    @property
    def job_name(self) -> str:
        """A name that every scheduler accepts: a lowercase letter, then lowercase letters, digits and hyphens."""
        stem = self.name or PurePath(self.target.name).name.removesuffix(".py")
        name = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-")
        return name if name[:1].isalpha() else f"job-{name}".strip("-")

    @property
    def fixed_size(self) -> int:
        """The number of workers of a job that a scheduler starts.

        Raises:
            UsageError: the user gave a range.
        """
        size = self.size or JobSize(1, 1)
        if size.is_elastic:
            raise UsageError(
                f"-n {size.least}:{size.most}: a submitted job needs a fixed number of workers, such as -n {size.most}"
            )
        return size.most

    def build_arguments(self, scheduler: str, *options: str, in_image: bool = False) -> list[str]:
        """Return the words after `stoker` that run this job inside a scheduler.

        Raises:
            UsageError: the job wants spares, and runs in containers.
        """
        if in_image and self.standby:
            raise UsageError(NO_SPARES)
        # The Stoker in a container image may know only the old name of --scheduler.
        flag = "--engine" if in_image else "--scheduler"
        ledger = ["--ledger"] if self.ledger else []
        standby = ["--standby"] if self.standby else []
        launch = ["launch", flag, scheduler, *options, *ledger, *standby, *self.limits.build_options()]
        module = ["-m"] if self.target.is_module else []
        return [*launch, *module, self.target.name, *self.target.arguments]
