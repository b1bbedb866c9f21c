"""A table of orders in SQLite, in the file of the first argument, with some rows more each time."""

import sqlite3
import sys
from contextlib import closing

ITEMS = ("tea", "jam", "oil")

with closing(sqlite3.connect(sys.argv[1])) as database, database:
    database.execute(
        "CREATE TABLE IF NOT EXISTS orders ("
        "id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL, cents INTEGER NOT NULL)"
    )
    rows = [(item, 100 * number) for number, item in enumerate(ITEMS, 1)]
    database.executemany("INSERT INTO orders (item, cents) VALUES (?, ?)", rows)
    (count,) = database.execute("SELECT count(*) FROM orders").fetchone()
print(f"{count} orders")
