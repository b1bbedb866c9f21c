"""Waits until the Parquet files and the copy have as many rows as the first argument says."""

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pyarrow.dataset as dataset

LAKE = Path("lake/topics/shop-orders")


def rows_in_files() -> int:
    return dataset.dataset(LAKE, format="parquet").count_rows() if LAKE.exists() else 0


def rows_in_copy() -> int:
    with closing(sqlite3.connect("copy.db")) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchone():
            return 0
        return int(database.execute("SELECT count(*) FROM orders").fetchone()[0])


wanted, deadline_s = int(sys.argv[1]), time.monotonic() + 60
while (rows_in_files(), rows_in_copy()) != (wanted, wanted) and time.monotonic() < deadline_s:
    time.sleep(0.2)
print(f"{rows_in_files()} rows in Parquet files, {rows_in_copy()} in the copy")
