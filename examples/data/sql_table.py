"""The rows of a query: an SQLite file here, any DBAPI or SQLAlchemy connection elsewhere."""

import sqlite3
import tempfile
from pathlib import Path

import stoker

path = Path(tempfile.mkdtemp(), "shop.db")
with sqlite3.connect(path) as connection:
    connection.execute("CREATE TABLE sales (id INTEGER, town TEXT, amount REAL)")
    sales = [(i, ["Ulm", "Bonn"][i % 2], i * 0.5) for i in range(500)]
    connection.executemany("INSERT INTO sales VALUES (?, ?, ?)", sales)

query = "SELECT town, amount FROM sales WHERE amount > 10 ORDER BY id"
dataset = stoker.data.sql(path, query, label="amount", batch_size=64, shuffle=True)
print(dataset.features)
print(dataset.rows, "rows")
