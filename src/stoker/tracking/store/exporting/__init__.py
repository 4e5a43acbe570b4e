"""Export runs for other programs.

| module | subject |
|---|---|
| tensorboard | event files, one directory per run |
| tables | every point as a row of a CSV or Parquet file |
| mlflow | MLflow's server, over its REST API |
"""
