"""Parquet files: the same arguments as CSV; every worker of a job takes its own shard of each epoch."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import stoker

folder = Path(tempfile.mkdtemp())
for part in range(3):
    table = pa.table({"id": np.arange(100) + part * 100, "kind": np.array(["a", "b"])[np.arange(100) % 2]})
    pyarrow.parquet.write_table(table, folder / f"part-{part}.parquet")

workers = [
    stoker.data.parquet(
        folder, label="kind", batch_size=32, shuffle=True, seed=1, shard=(index, 2), cache=folder
    )
    for index in range(2)
]
seen = sorted(int(one) for worker in workers for inputs, _ in worker for one in inputs["id"])
print(f"{workers[0].rows} and {workers[1].rows} rows, together each row once: {seen == list(range(300))}")
