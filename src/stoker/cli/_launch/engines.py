"""Which machines a job runs on, by `--engine`: a supervisor's job here, or one worker of a job that others started."""

from __future__ import annotations

import argparse
import dataclasses
import os
from dataclasses import dataclass

from stoker.doctor.measure.launch import Target
from stoker.errors import UsageError
from stoker.launch import discovery
from stoker.launch.engines import slurm
from stoker.launch.environments import Environment, Kubernetes, Slurm, TfConfig
from stoker.launch.hosts import LOCAL, Host, Size, hosts_of, size_of
from stoker.launch.job import JOB, RESTART, Job
from stoker.launch.limits import Limits
from stoker.launch.links import Reach, Srun, Ssh, local
from stoker.tracking.store import record_files


@dataclass(frozen=True)
class Plan:
    """A job, and where it runs."""

    job: Job
    size: Size
    hosts: list[Host]
    reach: Reach
    limits: Limits


def plan(args: argparse.Namespace, target: Target, limits: Limits) -> Plan:
    """What `--engine` comes to here.

    Raises:
        UsageError: it makes no sense here.
    """
    environment = _placed(args.engine)
    if environment is not None:
        return _in_place(environment, target, limits, args.ledger)
    job = Job(record_files.new_id(), target, args.ledger, restarts=_earlier_restarts(args.engine))
    size = size_of(args.size or "1")
    if args.engine == "slurm":
        hosts = slurm.nodes(os.environ)
        if args.size is None and all(host.slots for host in hosts):
            whole = sum(host.slots or 0 for host in hosts)
            size = Size(whole, whole)
        return Plan(job, size, hosts, Srun(args.python), limits)
    if args.engine == "ray":
        from stoker.launch.engines.ray import RayReach

        ray = RayReach(size)
        return Plan(job, size, ray.hosts(), ray, limits)
    return Plan(job, size, *_machines(args, size), limits)


def _placed(engine: str) -> Environment | None:
    """Where somebody else starts all workers, and this is one of them.

    Raises:
        UsageError: the engine works in no other way, and this is none of its workers.
    """
    if engine == "tf-config":
        return TfConfig(os.environ)
    if engine == "kubernetes":
        if not Kubernetes.here(os.environ):
            raise UsageError(
                "--engine kubernetes runs inside a pod: write what to submit with --write job.yaml, "
                "then kubectl apply -f job.yaml"
            )
        return Kubernetes(os.environ)
    if engine == "slurm" and Slurm.here(os.environ) and os.environ.get("SLURM_STEP_NUM_TASKS") != "1":
        return Slurm(os.environ)
    return None


def _in_place(environment: Environment, target: Target, limits: Limits, ledger: bool) -> Plan:
    """One worker; restarting all is up to whoever started them."""
    job = Job(
        os.environ.get(JOB) or record_files.new_id(),
        target,
        ledger,
        place=environment.place(),
        restarts=_earlier_restarts(environment.name),
    )
    once = dataclasses.replace(limits, max_restarts=0)
    return Plan(job, Size(1, 1), [Host(LOCAL)], local, once)


def _earlier_restarts(engine: str) -> int:
    text = os.environ.get("SLURM_RESTART_COUNT" if engine == "slurm" else RESTART, "0")
    return int(text) if text.isdigit() and engine != "local" else 0


def _machines(args: argparse.Namespace, size: Size) -> tuple[list[Host], Reach]:
    if args.hosts and args.discover:
        raise UsageError("--hosts and --discover both name the machines: give one of them")
    if args.discover:
        if not size.elastic:
            raise UsageError(
                "--discover is for a number of workers that may change: give a range such as -n 2:8"
            )
        return discovery.ask(args.discover), Ssh(args.ssh, args.python)
    if args.hosts:
        return hosts_of(args.hosts), Ssh(args.ssh, args.python)
    return [Host(LOCAL)], local
