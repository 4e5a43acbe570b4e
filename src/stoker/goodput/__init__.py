"""Where the time of a launched job went, over all its restarts.

`stoker launch` and its workers note what happens in files of the job, an event a line. The ledger is folded from these
files whenever somebody asks, so it is there however the job ended.

    .stoker/jobs/<job>/events/launch.events
    .stoker/jobs/<job>/events/worker-<restart>-<rank>.events

| module | subject |
|---|---|
| accounts | what the time of a worker is spent on |
| events | what is noted, and how it is written |
| journal | the events of one worker's process, written by the trainer as it goes |
| diary | the events of the job, written by `stoker launch` |
| history | the events of a job on one clock |
| pieces | a worker's time from its start to the next one, cut into pieces with an account each |
| kept_steps | which steps count in the end, and which were lost and done again |
| fold | the job's ledger from its history: a pure function |
| ledger | what a ledger says, by account, cause, worker and line; goodput as a curve; money |
| prometheus | the same in Prometheus' text format |

A worker's process can be killed at any moment: an event is one `write` to the end of a file, and a line that is not
complete is not read.
"""
