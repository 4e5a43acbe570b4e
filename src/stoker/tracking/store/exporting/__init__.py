"""Runs for other programs.

| module | subject |
|---|---|
| tensorboard | event files, a directory a run |
| tables | every point as a row of a CSV or Parquet file |
| mlflow | MLflow's server, over its REST API |
"""
