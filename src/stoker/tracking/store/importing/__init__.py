"""Runs of other trackers, and of before the store: read, and written as runs of ours; none is imported twice.

| module | subject |
|---|---|
| foreign | a run on its way in, and writing it |
| records | `.stoker/runs/*.json` |
| tensorboard | directories of event files |
| mlflow | MLflow's server, its database, its directory |
"""
