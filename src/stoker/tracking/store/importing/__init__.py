"""Import runs from other trackers and from records; no run is imported twice.

| module | subject |
|---|---|
| imported_run | a run from elsewhere, and how it is written to the store |
| records | `.stoker/runs/*.json` |
| tensorboard | directories of event files |
| mlflow | MLflow's server, its database, its directory |
"""
