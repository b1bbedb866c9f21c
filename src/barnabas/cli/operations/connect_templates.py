"""Templates of a connector package. Words between `@` are replaced."""

from typing import Final

PROJECT: Final = """\
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "@package@"
version = "0.1.0"
description = "A @kind@ connector"
requires-python = ">=3.11"
dependencies = ["barnabas[connect]"]

[project.entry-points."barnabas.connect"]
@Class@ = "@module@:@Class@"

[tool.setuptools.packages.find]
where = ["src"]

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
"""

README: Final = """\
# @package@

A @kind@ connector for Barnabas Connect.

    python -m pytest                          # its test: no broker, no Spark
    barnabas connect try rows connector.class=@module@:@Class@ @settings@

`try` and a worker find the class if `src` is on the `PYTHONPATH`, or if the package is installed:

    pip install .
    barnabas connect start
    barnabas connect create rows connector.class=@Class@ @settings@

Once it is installed, its entry point in `pyproject.toml` gives it the name `@Class@`. Install it
on every worker and every Spark executor.
"""

SOURCE: Final = '''\
"""Reads JSON lines from the files of a directory into a topic."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from barnabas.connect import (
    ConfigDef,
    ConfigType,
    ConnectError,
    ConnectorSetting,
    Importance,
    SourceBatch,
    SourceConnector,
    not_empty,
    schema_from_arrow,
    source_batch,
)
from barnabas.connect.connector import Partition, Position

BATCH_ROWS = 1000


class @Class@(SourceConnector):
    """Each file is a partition, whose position is the number of bytes that were read."""

    version = "0.1.0"
    poll_interval_ms = 1000

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "directory",
                ConfigType.STRING,
                doc="The directory with the files, whose names end with .jsonl.",
                importance=Importance.HIGH,
                validator=not_empty,
            ),
            ConnectorSetting(
                "topic",
                ConfigType.STRING,
                doc="The topic to write to.",
                importance=Importance.HIGH,
                validator=not_empty,
            ),
        )

    # In the worker

    def start(self) -> None:
        if not Path(self.settings["directory"]).is_dir():
            raise ConnectError(f"{self.settings['directory']} is not a directory.")

    def partitions(self) -> Sequence[Partition]:
        files = sorted(Path(self.settings["directory"]).glob("*.jsonl"))
        return [{"file": str(file)} for file in files]

    def has_new(self, partition: Partition, position: Position | None) -> bool:
        return Path(partition["file"]).stat().st_size > _bytes_read(position)

    # In a task, in another process

    def read(
        self, partition: Partition, position: Position | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        end = _bytes_read(position)
        rows: list[object] = []
        with Path(partition["file"]).open("rb") as file:
            file.seek(end)
            for line in file:
                if not line.endswith(b"\\n"):
                    break  # it is still being written
                end += len(line)
                rows.append(json.loads(line))
                max_rows -= 1
                if len(rows) == BATCH_ROWS or max_rows == 0:
                    yield self._batch(rows, end)
                    rows = []
                if max_rows == 0:
                    return
        if rows:
            yield self._batch(rows, end)

    def _batch(self, rows: list[object], end: int) -> SourceBatch:
        """Returns the rows as an Arrow array: here of structs, whose fields are in the data."""
        values = pa.array(rows)
        schema = schema_from_arrow(values.type, is_optional=False)
        records = source_batch(self.settings["topic"], schema, values.cast(schema.arrow_type()))
        return SourceBatch(records, {"bytes": end})


def _bytes_read(position: Position | None) -> int:
    return 0 if position is None else position["bytes"]
'''

SOURCE_TEST: Final = '''\
"""@Class@ in memory: no broker, no Spark."""

from pathlib import Path

import pytest
from @module@ import @Class@

from barnabas.connect import InvalidConfigError
from barnabas.connect.testing import read_source


def test_lines_are_read_once_and_in_order(tmp_path: Path) -> None:
    config = {"directory": str(tmp_path), "topic": "rows"}
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": 1, "name": "tea"}\\n{"id": 2, "name": "jam"}\\n{"id": 3')

    first = read_source(@Class@, config)
    assert first.values == [{"id": 1, "name": "tea"}, {"id": 2, "name": "jam"}]
    assert first.topics == ["rows", "rows"]

    with file.open("a") as lines:
        lines.write(', "name": "oil"}\\n')
    second = read_source(@Class@, config, first.positions)
    assert second.values == [{"id": 3, "name": "oil"}]
    assert read_source(@Class@, config, second.positions).values == []


def test_a_read_ends_after_the_rows_that_are_wanted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\\n{"id": 2}\\n{"id": 3}\\n')
    config = {"directory": str(tmp_path), "topic": "rows"}
    assert read_source(@Class@, config, max_rows=2).values == [{"id": 1}, {"id": 2}]


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidConfigError) as raised:
        read_source(@Class@, {"directory": ""})
    assert str(raised.value).count("\\n") == 1  # both settings
'''

SINK: Final = '''\
"""Writes topics to files of JSON lines in a directory, each record once."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.connect import (
    ConfigDef,
    ConfigType,
    ConnectBatch,
    ConnectError,
    DataError,
    ConnectorSetting,
    Importance,
    SinkConnector,
    SinkWriter,
    WriteContext,
    WriteReport,
    not_empty,
)
from barnabas.connect.connector import TopicPartition

_FILE = re.compile(r"(?P<topic>.+)\\+(?P<partition>\\d+)\\+(?P<start>\\d+)-(?P<end>\\d+)\\.jsonl")


class @Class@(SinkConnector):
    """A file has the offsets of its records in its name, so nothing is written twice: after an
    error or on another worker, it goes on where the files end."""

    version = "0.1.0"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "directory",
                ConfigType.STRING,
                doc="The directory to write to. Every worker and executor must see it.",
                importance=Importance.HIGH,
                validator=not_empty,
            ),
        )

    @property
    def directory(self) -> Path:
        return Path(self.settings["directory"])

    # In the worker

    def start(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConnectError(f"{self.directory}: {error.strerror}") from error

    def committed_positions(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        ends: dict[TopicPartition, int] = {}
        for file in self.directory.iterdir():
            if found := _FILE.fullmatch(file.name):
                key = found["topic"], int(found["partition"])
                ends[key] = max(ends.get(key, 0), int(found["end"]))
        return {key: ends[key] for key in partitions if key in ends}

    def commit(self, reports: Sequence[WriteReport]) -> None:
        """Renames the files of all tasks: only now they count."""
        for report in reports:
            for temporary, final in report.details:
                Path(temporary).rename(final)

    # In a task, in another process

    def open(self, context: WriteContext) -> SinkWriter:
        return LinesWriter(self.directory, context)


class LinesWriter(SinkWriter):
    def __init__(self, directory: Path, context: WriteContext) -> None:
        self._directory = directory
        self._context = context
        self._lines: dict[TopicPartition, list[str]] = {}

    def write(self, batch: ConnectBatch) -> None:
        if batch.value.null_count:
            nulls = batch.filter(batch.value.is_null())
            self._context.reporter.report(nulls, DataError("A record has no value."))
            batch = batch.filter(batch.value.is_valid())
        keys = zip(batch.topic.to_pylist(), batch.partition.to_pylist(), strict=True)
        for key, value in zip(keys, batch.value.to_pylist(), strict=True):
            self._lines.setdefault(key, []).append(json.dumps(value, default=str))

    def close(self) -> WriteReport:
        files = []
        for key, (start, end) in self._context.ranges.items():
            topic, partition = key
            name = f"{topic}+{partition}+{start}-{end}.jsonl"
            temporary = self._directory / f"{name}.{self._context.attempt}.tmp"
            temporary.write_text("".join(f"{line}\\n" for line in self._lines.get(key, [])))
            files.append((str(temporary), str(self._directory / name)))
        positions = {key: end for key, (_, end) in self._context.ranges.items()}
        return WriteReport(positions, files)
'''

SINK_TEST: Final = '''\
"""@Class@ in memory: no broker, no Spark."""

from pathlib import Path

import pytest
from @module@ import @Class@

from barnabas.connect import DataError
from barnabas.connect.testing import records, write_sink


def lines(directory: Path) -> str:
    return "".join(file.read_text() for file in sorted(directory.glob("*.jsonl")))


def test_records_are_written_once(tmp_path: Path) -> None:
    config = {"directory": str(tmp_path)}
    first = records([{"id": 1}, {"id": 2}], topic="rows")
    assert write_sink(@Class@, config, first).positions == {("rows", 0): 2}

    more = records([{"id": 3}], topic="rows", first_offset=2)
    write_sink(@Class@, config, first, more)  # as after an error
    assert lines(tmp_path) == '{"id": 1}\\n{"id": 2}\\n{"id": 3}\\n'


def test_a_record_without_a_value_is_an_error(tmp_path: Path) -> None:
    batch = records([{"id": 1}, None])
    with pytest.raises(DataError):
        write_sink(@Class@, {"directory": str(tmp_path)}, batch)
    assert lines(tmp_path) == ""

    written = write_sink(@Class@, {"directory": str(tmp_path)}, batch, tolerates_errors=True)
    assert [offset for offset, _ in written.errors] == [1]
    assert lines(tmp_path) == '{"id": 1}\\n'
'''
