"""A PySpark data source of a test."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader


class Letters(DataSource):
    """Streams the letters of the option `letters`, three at a time."""

    @classmethod
    def name(cls) -> str:
        return "letters"

    def schema(self) -> str:
        if "letters" not in self.options:
            raise ValueError("the option letters is missing")
        return "position INT, letter STRING"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:  # noqa: N802
        return LettersReader(self.options["letters"])


class LettersReader(SimpleDataSourceStreamReader):
    def __init__(self, letters: str) -> None:
        self._letters = letters

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"position": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int, str]], dict[str, int]]:
        begin = start["position"]
        end = min(begin + 3, len(self._letters))
        return self._rows(begin, end), {"position": end}

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[int, str]]:
        return self._rows(start["position"], end["position"])

    def _rows(self, begin: int, end: int) -> Iterator[tuple[int, str]]:
        return iter([(position, self._letters[position]) for position in range(begin, end)])

    def commit(self, end: dict[str, int]) -> None:
        pass


class NoDataSource:
    """Is no data source."""
