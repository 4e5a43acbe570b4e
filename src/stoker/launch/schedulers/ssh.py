"""Machines behind ssh, listed by the user or by a command that prints those available now."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping

from stoker.errors import UsageError
from stoker.launch.discovery import discover_hosts
from stoker.launch.hosts import LOCAL, Host, JobSize, parse_hosts
from stoker.launch.links import AGENT, Hear, Link, ProcessLink, start_local_agent
from stoker.launch.plan import LaunchPlan
from stoker.launch.request import JobRequest
from stoker.launch.schedulers.base import Scheduler


class Ssh(Scheduler):
    """Agents behind ssh, which must log in without a password.

    The project is in the same directory on every machine.
    """

    name = "ssh"
    restart_variable = None

    def __init__(
        self,
        variables: Mapping[str, str],
        hosts: str | None = None,
        discover: str | None = None,
        command: str = "ssh",
        python: str | None = None,
    ) -> None:
        super().__init__(variables)
        self._hosts, self._discover = hosts, discover
        self._command = shlex.split(command)
        self._python = python or sys.executable

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options for the machines and for logging in."""
        parser.add_argument("--hosts", metavar="A,B", help="ssh: the machines, such as a,b or a:4,b:4")
        parser.add_argument(
            "--discover", metavar="COMMAND", help="ssh: a command that prints the machines available now"
        )
        parser.add_argument(
            "--ssh", metavar="COMMAND", default="ssh", help="ssh: the command, with its options"
        )

    @classmethod
    def from_options(cls, options: argparse.Namespace, variables: Mapping[str, str]) -> Scheduler:
        """Make the scheduler from the options: either the machines, or the command that prints them."""
        if options.hosts and options.discover:
            raise UsageError("--hosts and --discover both name the machines: give only one of them")
        if not options.hosts and not options.discover:
            raise UsageError("--scheduler ssh needs machines: give --hosts a,b or --discover COMMAND")
        return cls(variables, options.hosts, options.discover, options.ssh, options.python)

    def plan(self, request: JobRequest) -> LaunchPlan:
        """Plan one agent on each machine."""
        size = request.size or JobSize(1, 1)
        if self._discover is None:
            return LaunchPlan(size, parse_hosts(self._hosts or ""), self.connect)
        if not size.is_elastic:
            raise UsageError("--discover needs a range of workers, such as -n 2:8")
        return LaunchPlan(size, discover_hosts(self._discover), self.connect, discover=self._discover)

    def connect(self, host: Host, hear: Hear) -> Link:
        """Start an agent on a machine; the one called localhost needs no ssh."""
        if host.name == LOCAL:
            return start_local_agent(host, hear)
        remote = f"cd {shlex.quote(os.getcwd())} && exec {shlex.quote(self._python)} -m {AGENT}"
        # -T: no terminal. BatchMode: a password prompt is an error, since nobody is there to answer.
        options = ["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"]
        return ProcessLink([*self._command, *options, host.name, remote], hear)
