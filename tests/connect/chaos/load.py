"""Inserts rows and appends lines until it is stopped."""

import random
import threading
from pathlib import Path

from tests.connect.chaos.databases import Database, create_source_table, insert_rows

PAUSE_S = 0.08
MAX_ROWS = 30


class Load(threading.Thread):
    """Both have the numbers from 0 to `count`."""

    def __init__(self, database: Database, lines_file: Path, seed: float) -> None:
        super().__init__(name="load", daemon=True)
        self.count = 0
        self.failure: BaseException | None = None
        self._rng = random.Random(seed)
        self._database = database
        self._lines_file = lines_file
        self._stopping = threading.Event()
        create_source_table(database)
        lines_file.touch()

    def stop(self) -> int:
        """Returns the number of rows, which is that of lines too."""
        self._stopping.set()
        if self.is_alive():
            self.join()
        if self.failure is not None:
            raise self.failure
        return self.count

    def run(self) -> None:
        try:
            while not self._stopping.wait(PAUSE_S):
                self._write(self._rng.randint(1, MAX_ROWS))
        except BaseException as failure:
            self.failure = failure

    def _write(self, rows: int) -> None:
        numbers = range(self.count, self.count + rows)
        insert_rows(self._database, numbers)
        text = "".join(f"line {number}\n" for number in numbers)
        half = self._rng.randrange(len(text))
        for part in (text[:half], text[half:]):  # a line may be there only in part
            with self._lines_file.open("a") as file:
                file.write(part)
        self.count += rows
