"""The interface of every scheduler."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from stoker.errors import UsageError
from stoker.launch.place import RESTART, WorkerPlace
from stoker.launch.plan import LaunchPlan
from stoker.launch.request import JobRequest


class Scheduler(ABC):
    """One scheduler, with this process's environment variables and the options that it was given."""

    # The scheduler's name on the command line.
    name: ClassVar[str]
    # Whether jobs can be submitted to the scheduler, to run later.
    takes_submissions: ClassVar[bool] = False
    # Whether a submitted program is in a container image and need not exist here.
    uses_image: ClassVar[bool] = False
    # The variable in which the scheduler counts the restarts of a whole job; None if it never restarts one.
    restart_variable: ClassVar[str | None] = RESTART

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    @classmethod  # noqa: B027 - most schedulers have none
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options that only this scheduler reads."""

    @classmethod
    def from_options(cls, options: argparse.Namespace, variables: Mapping[str, str]) -> Scheduler:
        """Make the scheduler that the command line asks for.

        Raises:
            UsageError: the options contradict each other.
        """
        return cls(variables)

    # Inside a job that the scheduler started

    @classmethod
    def has_started(cls, variables: Mapping[str, str]) -> bool:
        """Return whether the scheduler started the process with these variables, as a worker."""
        return False

    def find_place(self) -> WorkerPlace:
        """Return this worker's place in its job: the only worker, unless the scheduler knows better.

        Raises:
            UsageError: the variables do not give the place.
        """
        return WorkerPlace(0, ["localhost:0"])

    def count_restarts(self) -> int:
        """Return how many times the scheduler has restarted the whole job so far."""
        text = self._variables.get(self.restart_variable or "", "")
        return int(text) if text.isdigit() else 0

    # From the command line

    def must_submit(self) -> bool:
        """Return whether a job cannot run from here and must be submitted."""
        return False

    @abstractmethod
    def plan(self, request: JobRequest) -> LaunchPlan:
        """Decide where a job runs.

        Raises:
            UsageError: the job cannot run from here.
        """

    def build_submission(self, request: JobRequest) -> str:
        """Return the script or manifest that would be submitted.

        Raises:
            UsageError: jobs cannot be submitted to this scheduler, or something it needs is not given.
        """
        raise UsageError(f"jobs cannot be submitted to {self.name}")

    def submit(self, request: JobRequest, directory: Path) -> str:
        """Submit a job from a file in this directory; return a line that says what was submitted.

        Raises:
            UsageError: the scheduler refuses the job.
        """
        raise UsageError(f"jobs cannot be submitted to {self.name}")

    def get_variable(self, name: str) -> str:
        """Read a variable that must be set."""
        if name not in self._variables:
            raise UsageError(f"{self.name}: {name} is not set: is this process part of a job?")
        return self._variables[name]

    def get_number(self, name: str) -> int:
        """Read a variable that must be a whole number."""
        text = self.get_variable(name)
        if not text.isdigit():
            raise UsageError(f"{self.name}: {name} must be a whole number, not {text!r}")
        return int(text)
