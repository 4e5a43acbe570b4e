"""A job of many processes: starting it on the machines there are, seeing it through faults, and its books.

    $ stoker launch -n 4 train.py

One supervisor (`stoker launch`) talks to one agent on each machine, over the agent's standard input and output: a child
process here, ssh or `srun` elsewhere. An agent starts workers and says how they fare; what follows from that is decided
by the supervisor alone. TensorFlow's own collectives carry the training: a worker learns of its job from `TF_CONFIG`.

| module | subject |
|---|---|
| environments | who am I in a job that somebody else started: rank, size, addresses |
| engines | schedulers: what is submitted to each, and how a job is reached inside one |
| messages | what supervisor and agent say to each other |
| worker | one worker's process, as its agent sees it |
| lines | output cut into lines, progress bars thinned |
| ports | ports that are free |
| agent | the workers of one machine |
| links | how a supervisor reaches an agent |
| discovery | which machines there are now, by a command of the user's |
| hosts | which machines there are, and how many workers go where |
| crew | all agents of a job |
| limits | how long, and how often |
| arrivals | who has started and joined, and who is waited for |
| round | one start of all workers, until they have all ended |
| supervisor | rounds, until the job is done |
| view | log files, and the merged live view |
| job | what is to run, and as whom |
"""
