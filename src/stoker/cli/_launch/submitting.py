"""What is written for a scheduler, and what SLURM is given if nobody asked to see it first."""

from __future__ import annotations

import argparse
import sys

from stoker.cli._launch.options import pod_of
from stoker.doctor.measure.launch import Target
from stoker.doctor.report import output
from stoker.errors import UsageError
from stoker.files import JOBS
from stoker.launch.engines import kubernetes, slurm, yaml_text
from stoker.launch.engines.request import Request
from stoker.launch.hosts import size_of
from stoker.launch.limits import Limits
from stoker.tracking.store import record_files


def write(args: argparse.Namespace, target: Target, limits: Limits) -> int:
    """Write what would be submitted.

    Raises:
        UsageError: the engine submits nothing, or something it needs is not given.
    """
    if args.engine == "slurm":
        text = slurm.script(_request(args, target, limits), args.sbatch)
    elif args.engine == "kubernetes":
        if not args.image:
            raise UsageError("--engine kubernetes needs the container's image: --image registry/name:tag")
        make = kubernetes.job_set if args.kind == "jobset" else kubernetes.tf_job
        text = yaml_text.dump(make(_request(args, target, limits), args.image, pod_of(args.pod)))
    else:
        raise UsageError(f"--write: nothing is submitted to {args.engine}; use --engine slurm or kubernetes")
    output.write(args.write, text)
    return 0


def submit(args: argparse.Namespace, target: Target, limits: Limits) -> int:
    """Hand the batch script to SLURM."""
    path = JOBS / record_files.new_id() / "job.sbatch"
    script = slurm.script(_request(args, target, limits), args.sbatch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    number = slurm.submit(str(path))
    print(f"stoker: submitted {path} as job {number}", file=sys.stderr)
    return 0


def _request(args: argparse.Namespace, target: Target, limits: Limits) -> Request:
    size = size_of(args.size or "1")
    if size.elastic:
        raise UsageError(
            f"-n {args.size}: a scheduler gives a fixed number of workers; give one, such as -n {size.most}"
        )
    options = ["--max-restarts", str(limits.max_restarts)] if args.engine == "slurm" else []
    return Request(target, size.most, limits, args.name, options)
