"""Run a program in many processes, on this machine or several, and restart them after faults.

To train one model together, the program makes and compiles it under `with stoker.strategy().scope():`.
Every process gets its place in TF_CONFIG. When one dies, hangs or is stopped, all are ended and all start again on
fresh ports; with `checkpoint=` they continue from the last save. A preemption (exit code 75) does not count as a fault.
Output is shown with the worker's rank in front, and kept in a log file for each worker.

    stoker launch -n 4 train.py --epochs 3
    stoker launch -n 4 --ledger train.py
    stoker launch -n 2:8 --hosts a:4,b:4 train.py
    stoker launch -n 8 --scheduler slurm --write job.sbatch train.py
    stoker launch -n 8 --scheduler kubernetes --image IMAGE --write job.yaml train.py
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from typing import TYPE_CHECKING

from stoker.cli._launch import options
from stoker.cli._launch.metrics import keep_metrics
from stoker.doctor.report import output
from stoker.errors import UsageError
from stoker.files import JOBS
from stoker.launch.job import LaunchJob
from stoker.launch.place import JOB
from stoker.launch.plan import LaunchPlan
from stoker.launch.request import NO_SPARES, JobRequest
from stoker.launch.supervisor import Supervisor
from stoker.launch.view import JobView
from stoker.printing import print_note
from stoker.tracking.store import record_files

if TYPE_CHECKING:
    from stoker.goodput.ledger import Price

configure = options.configure


def run(args: argparse.Namespace) -> int:
    """Check the request, then run the job, submit it, or write what would be submitted."""
    request = options.read_request(args)
    scheduler = options.make_scheduler(args, os.environ)
    if args.write:
        output.write(args.write, scheduler.build_submission(request))
        return 0
    if scheduler.must_submit():
        print_note(scheduler.submit(request, JOBS / record_files.new_id()))
        return 0
    return _supervise(request, scheduler.plan(request), scheduler.count_restarts(), args)


def _supervise(request: JobRequest, plan: LaunchPlan, restarts: int, args: argparse.Namespace) -> int:
    """Run the job on this machine until it ends."""
    limits, job_id = request.limits, record_files.new_id()
    if plan.place is not None:
        if request.standby:
            raise UsageError(NO_SPARES)
        # The scheduler restarts the workers, and gives all of them the same id.
        limits, job_id = dataclasses.replace(limits, max_restarts=0), os.environ.get(JOB) or job_id
    job = LaunchJob(job_id, request.target, request.ledger, plan.place, restarts, request.standby)
    try:
        view = JobView(JOBS / job.id, sys.stdout, sys.stderr, quiet=args.quiet)
    except OSError as error:
        raise UsageError(f"cannot write to {JOBS} ({error.strerror}): run from another directory") from None
    supervisor = Supervisor(job, plan, limits, view)
    price: Price | None = args.price
    with keep_metrics(args.metrics, view.directory, price):
        code = supervisor.run()
    if request.ledger:
        # Importing this takes half of the start-up time of the command, and few jobs need it.
        from stoker.cli._launch import ledger

        ledger.close(job.id, request.target, supervisor.ranks, code, supervisor.restarts)
        ledger.show_goodput(view.directory, price)
    return code
