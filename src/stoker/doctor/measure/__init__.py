"""Measuring a program or a loop from beginning to end: what `run`, `Watch` and notebooks share.

| module | subject |
|---|---|
| run | the books of one run, from beginning to end, in the measured process |
| heartbeat | the only thread Stoker runs in that process |
| child | `stoker run` in the program's process: when measuring begins and ends |
| step_experiments | when the experiments at the end of a run may run |
| experiment_options | how long the experiments may take |
| repricing | the experiments of a saved run, repeated in another process |
| child_settings | what Stoker's process tells the program's |
| launch | `stoker run` in Stoker's process: how the program is started, and its record before and after |
| bootstrap/ | the way into the program: `sitecustomize`, which Python imports first |
| worker_heartbeat | the heartbeat of a job's worker |
| worker_spare | the spare of a job's worker: what it imports, and how it waits |
| supervise | waiting for the program, passing signals on, and ending as it ended |
"""
