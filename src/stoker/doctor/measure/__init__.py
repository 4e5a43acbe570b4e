"""Measuring one program or loop from its beginning to its end: what `run`, `Watch` and notebooks share.

| module | subject |
|---|---|
| run | the books of one run, from its beginning to its end, in the process that is measured |
| heartbeat | the only thread Stoker runs in that process |
| child | `stoker run`, in the program's process: when measuring begins and ends |
| step_experiments | the experiments at its end: when they may run |
| experiment_options | how long they may take |
| repricing | the experiments of a saved run, made again in another process |
| child_settings | what our process tells the program's |
| launch | `stoker run`, in our process: how the program is started, and its record before and after |
| bootstrap/ | the way into the program: `sitecustomize`, which Python imports first |
| worker_heartbeat | the sign of life of a job's worker |
| supervise | waiting for the program: signals, and ending as it ended |
"""
