"""What is to be submitted, whoever takes it: a program, and `stoker launch` around it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from stoker.doctor.measure.launch import Target
from stoker.launch.limits import Limits


@dataclass(frozen=True)
class Request:
    """A job for a scheduler; `options` are those of `stoker launch` that the workers' side needs."""

    target: Target
    workers: int
    limits: Limits
    name: str = ""
    options: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The program as `stoker launch` takes it."""
        return (["-m"] if self.target.is_module else []) + [self.target.name, *self.target.arguments]

    @property
    def job_name(self) -> str:
        """A name that every scheduler takes: small letters, digits and hyphens, a letter first."""
        stem = self.name or PurePath(self.target.name).name.removesuffix(".py")
        name = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-")
        return name if name[:1].isalpha() else f"job-{name}".strip("-")

    def limit_options(self, usual: Limits = Limits()) -> list[str]:  # noqa: B008 - it is frozen
        """The limits that are not the usual ones, as options."""
        pairs = (
            ("--heartbeat", self.limits.heartbeat_s, usual.heartbeat_s),
            ("--start-deadline", self.limits.start_s, usual.start_s),
            ("--grace", self.limits.grace_s, usual.grace_s),
        )
        return [word for option, value, other in pairs if value != other for word in (option, f"{value:g}s")]
