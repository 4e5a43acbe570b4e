"""What `stoker launch` is made of.

| module | subject |
|---|---|
| options | the options, and the values they stand for |
| engines | which machines a job runs on, by `--engine` |
| books | the ledger of a job, from its workers' records |
| submitting | what is written for a scheduler instead |
"""
