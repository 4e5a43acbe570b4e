"""Where the time of a launched job went, over all its restarts.

`stoker launch` and its workers write events to the job's files, one per line. The ledger is computed from these files
each time somebody asks for it, so it exists however the job ended.

    .stoker/jobs/<job>/events/launch.events
    .stoker/jobs/<job>/events/worker-<restart>-<rank>.events

| module | subject |
|---|---|
| accounts | what a worker spends its time on |
| events | the events, and how they are written |
| journal | the events of one worker's process, written by the trainer as it goes |
| diary | the events of the job, written by `stoker launch` |
| history | the events of a job on one clock |
| pieces | a worker's time from its start to the next one, cut into pieces that each belong to one account |
| kept_steps | which steps count in the end, and which were lost and repeated |
| fold | computes the job's ledger from its history: a pure function |
| ledger | the ledger: time by account, cause, worker and line; goodput as a curve; money |
| prometheus | the ledger in Prometheus' text format |

A worker's process can be killed at any moment. Each event is therefore one `write` to the end of a file, and readers
skip an incomplete line.
"""
