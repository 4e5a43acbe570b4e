"""Runs a job of many processes: on one machine or many, through faults.

    $ stoker launch -n 4 train.py

A scheduler says where a `JobRequest` runs: it makes a `LaunchPlan`, or submits the job to run later. One supervisor
(`stoker launch`) then talks to one agent on each machine, over the agent's standard input and output: through a child
process here, ssh or `srun` elsewhere. Agents start workers and report on them; the supervisor alone decides what to do.
TensorFlow's own collectives carry the training: `TF_CONFIG` tells each worker its place.

| module | subject |
|---|---|
| request | what the user asked to run |
| limits | how long to wait, and how many times to restart |
| schedulers | one class per scheduler: what it detects, plans and submits |
| plan | where a job runs |
| environments | joining a job that was started without `stoker launch` |
| place | a worker's rank and addresses, as TF_CONFIG has them |
| job | the command and the environment of a worker |
| supervisor | rounds, until the job is done |
| discovery | the machines available now, from a command of the user's |
| hosts | the machines, and how many workers each one gets |
| events | what a supervisor reacts to |
| crew | all agents of a job |
| links | how a supervisor reaches an agent |
| round | one start of all workers, until all have ended |
| hopeless | errors that no restart can fix |
| arrivals | which workers have started and joined |
| messages | what supervisor and agent send each other |
| agent | the workers of one machine |
| worker | one worker, as its agent sees it |
| processes | how a worker's process starts, and the spares that wait to become workers |
| ports | free ports |
| lines | output split into lines |
| view | log files and the live view |
"""
