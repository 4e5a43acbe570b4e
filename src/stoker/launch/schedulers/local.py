"""This machine, without a scheduler."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from stoker.launch.hosts import LOCAL, Host, JobSize
from stoker.launch.links import start_local_agent
from stoker.launch.plan import LaunchPlan
from stoker.launch.request import JobRequest
from stoker.launch.schedulers.base import Scheduler
from stoker.launch.schedulers.ssh import Ssh


class Local(Scheduler):
    """All workers run on this machine. A process that no scheduler started is the only worker."""

    name = "local"
    restart_variable = None

    @classmethod
    def from_options(cls, options: argparse.Namespace, variables: Mapping[str, str]) -> Scheduler:
        """Make the scheduler from the options; if machines are named, it is ssh, which need not be named as well."""
        if options.hosts or options.discover:
            return Ssh.from_options(options, variables)
        return cls(variables)

    @classmethod
    def has_started(cls, variables: Mapping[str, str]) -> bool:
        """Return True: this is every process that no other scheduler started."""
        return True

    def plan(self, request: JobRequest) -> LaunchPlan:
        """Plan one agent, a child of this process."""
        return LaunchPlan(request.size or JobSize(1, 1), [Host(LOCAL)], start_local_agent)
