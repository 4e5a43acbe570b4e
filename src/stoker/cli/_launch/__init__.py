"""The parts of `stoker launch`.

| module | subject |
|---|---|
| options | the options, and the request that they make |
| ledger | the ledger of a job, from its workers' records |
| metrics | the ledger in a file for Prometheus, while the job runs |
"""
