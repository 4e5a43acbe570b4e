"""Run a program in many processes, on this machine or on several, and see it through faults.

Every process gets its place in TF_CONFIG. When one dies, hangs or is stopped, all are ended and all start again, at
fresh ports; with `checkpoint=` they go on where the last save was. A preemption (exit code 75) is not counted as a
fault. Output is shown with the rank in front, and kept in a log file for each worker.

    stoker launch -n 4 train.py --epochs 3
    stoker launch -n 4 --ledger train.py
    stoker launch -n 2:8 --hosts a:4,b:4 train.py
    stoker launch -n 8 --engine slurm --write job.sbatch train.py
    stoker launch -n 8 --engine kubernetes --image IMAGE --write job.yaml train.py
"""

from __future__ import annotations

import argparse
import os
import sys

from stoker.cli._launch import books, engines, options, submitting
from stoker.errors import UsageError
from stoker.files import JOBS
from stoker.launch.engines import slurm
from stoker.launch.supervisor import Supervisor
from stoker.launch.view import View

configure = options.configure


def run(args: argparse.Namespace) -> int:
    """Check the request, and run the job, or submit it."""
    target, limits = options.target_of(args), options.limits_of(args)
    if args.write:
        return submitting.write(args, target, limits)
    if args.engine == "slurm" and not slurm.allocated(os.environ):
        return submitting.submit(args, target, limits)
    plan = engines.plan(args, target, limits)
    try:
        view = View(JOBS / plan.job.id, sys.stdout, sys.stderr, quiet=args.quiet)
    except OSError as error:
        raise UsageError(f"cannot write to {JOBS} ({error.strerror}): run from another directory") from None
    supervisor = Supervisor(plan.job, plan.size, plan.hosts, plan.reach, plan.limits, view, args.discover)
    code = supervisor.run()
    if args.ledger:
        books.close(plan.job.id, target, supervisor.ranks, code, supervisor.restarts)
    return code
