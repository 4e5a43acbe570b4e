"""What `stoker launch` is made of.

| module | subject |
|---|---|
| options | the options, and the request they make |
| ledger | the ledger of a job, from its workers' records |
| metrics | the ledger in a file for Prometheus, while the job runs |
"""
