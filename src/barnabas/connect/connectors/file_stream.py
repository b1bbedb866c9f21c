"""Lines of a text file, as Kafka's FileStreamSourceConnector and FileStreamSinkConnector.

The source writes a record for each line that has ended. `\\n`, `\\r` and `\\r\\n` end lines. Its
position counts bytes. Kafka counts the characters of lines, although it skips that many bytes, so
positions differ, and can be exchanged, only as long as the file is ASCII.

- A file that does not exist is waited for.
- A file that is shorter than the position was truncated or replaced: it is read from its start.
  A replacement that is already longer than the position cannot be recognized.
- Driver and tasks must see the same file: in local mode, or on a shared file system.

The sink appends one line for each record. A write has a lock on the file, so several tasks can
write to one. Records that are written again after an error are in the file twice: use a sink that
is exactly once where that matters.

Without `file` they read standard input and write standard output, of the Connect process. Spark
must run on the same machine to read; what standard input had is not kept after a restart.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConnectorSetting,
    Importance,
    at_least,
    not_empty,
)
from barnabas.connect.connector import (
    Partition,
    Position,
    SinkConnector,
    SinkWriter,
    SourceBatch,
    SourceConnector,
    TopicPartition,
    WriteContext,
    WriteReport,
)
from barnabas.connect.connectors.java_text import java_text
from barnabas.connect.connectors.text_lines import READ_BYTES, Lines, LineSearch, split_lines
from barnabas.connect.data.batch import ConnectBatch, source_batch
from barnabas.connect.data.schema import ConnectSchema, Type
from barnabas.connect.errors import ConnectError, RetriableError

log = logging.getLogger(__name__)

FILE = "file"
TOPIC = "topic"
BATCH_SIZE = "batch.size"

FILENAME = "filename"
POSITION = "position"

MAX_LINE_BYTES = 256 << 20
WRITE_BYTES = 8 << 20


# Source


class FileStreamSource(SourceConnector):
    """Reads the lines of a file into a topic."""

    version = "1.0"
    poll_interval_ms = 1000

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                FILE,
                ConfigType.STRING,
                None,
                "The file to read. Without it, standard input of the Connect process is read.",
                Importance.HIGH,
            ),
            ConnectorSetting(
                TOPIC,
                ConfigType.STRING,
                doc="The topic to write to.",
                importance=Importance.HIGH,
                validator=not_empty,
            ),
            ConnectorSetting(
                BATCH_SIZE,
                ConfigType.INT,
                2000,
                "The number of lines after which a transaction may end.",
                Importance.LOW,
                at_least(1),
            ),
        )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._standard_input: _StandardInput | None = None
        self._line_search = LineSearch()
        self._is_missing_logged = False

    @property
    def _file(self) -> str | None:
        return self.settings[FILE] or None

    def start(self) -> None:
        if self._file is None:
            self._standard_input = _StandardInput(sys.stdin.buffer)

    def stop(self) -> None:
        if self._standard_input is not None:
            self._standard_input.close()
            self._standard_input = None

    def partitions(self) -> Sequence[Partition]:
        path = self._file if self._standard_input is None else self._standard_input.path
        return [] if path is None else [{FILENAME: path}]

    def has_new(self, partition: Partition, position: Position | None) -> bool:
        try:
            with Path(partition[FILENAME]).open("rb") as file:
                self._is_missing_logged = False
                return self._line_search.has_line(file, _start(file, position))
        except FileNotFoundError:
            if not self._is_missing_logged:
                log.warning(
                    "Connector %s waits for file %s, which does not exist.",
                    self.name,
                    partition[FILENAME],
                )
                self._is_missing_logged = True
            return False
        except OSError as error:
            raise _unreadable(partition, error) from error

    def read(
        self, partition: Partition, position: Position | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        try:
            with Path(partition[FILENAME]).open("rb") as file:
                yield from self._read_file(file, _start(file, position), max_rows)
        except FileNotFoundError:
            if self._file is None:
                raise ConnectError(
                    "Standard input can be read only if Spark runs on the machine of the Connect "
                    f"process: {partition[FILENAME]} does not exist here. Set '{FILE}'."
                ) from None
        except OSError as error:
            raise _unreadable(partition, error) from error

    def _read_file(self, file: BinaryIO, start: int, max_rows: int) -> Iterator[SourceBatch]:
        file.seek(start)
        rest = b""
        while max_rows > 0:
            block = file.read(max(READ_BYTES, len(rest)))
            if not block:
                return
            if len(rest) + len(block) > MAX_LINE_BYTES:
                raise ConnectError(
                    f"A line of more than {MAX_LINE_BYTES} bytes begins at position {start} of "
                    f"{file.name}. Continue after it by setting the offset of the connector."
                )
            data = rest + block
            lines = split_lines(data)
            if lines is None:
                rest = data
                continue
            lines = lines.limit(max_rows)
            yield self._batch(lines, start)
            max_rows -= len(lines.values)
            consumed = int(lines.ends[-1])
            start += consumed
            rest = data[consumed:]

    def _batch(self, lines: Lines, start: int) -> SourceBatch:
        count = len(lines.values)
        every = self.settings[BATCH_SIZE]
        return SourceBatch(
            source_batch(self.settings[TOPIC], ConnectSchema(Type.STRING), lines.values),
            {POSITION: start + int(lines.ends[-1])},
            {
                row: {POSITION: start + int(lines.ends[row])}
                for row in range(every - 1, count - 1, every)
            },
        )

    def check_offsets(self, offsets: Sequence[tuple[Partition, Position | None]]) -> bool:
        if self._file is None:
            raise ConnectError(
                f"Offsets cannot be modified if the '{FILE}' configuration is unspecified. This is "
                "because stdin is used for input and offsets are not tracked."
            )
        for partition, position in offsets:
            if position is not None:
                _check_offset(partition, position)
        return True


def _check_offset(partition: Partition, position: Position) -> None:
    """Raises ConnectError, with Kafka's texts, for a position that cannot be one of a file."""
    if POSITION not in position:
        raise ConnectError(f"Offset objects should either be null or contain the key '{POSITION}'")
    value = position[POSITION]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConnectError(
            f"The value for the '{POSITION}' key in the offset is expected to be a Long value"
        )
    if value < 0:
        raise ConnectError(
            f"The value for the '{POSITION}' key in the offset should be a non-negative value"
        )
    if FILENAME not in partition:
        raise ConnectError(f"Partition objects should contain the key '{FILENAME}'")


def _unreadable(partition: Partition, error: OSError) -> RetriableError:
    return RetriableError(f"File {partition[FILENAME]} cannot be read: {error.strerror or error}")


def _start(file: BinaryIO, position: Position | None) -> int:
    """Returns the byte to read from: 0 if the file is shorter than what was read of it."""
    start: int = (position or {}).get(POSITION) or 0
    if start and _is_regular(file) and os.fstat(file.fileno()).st_size < start:
        log.info("%s is shorter than position %d: it is read from its start.", file.name, start)
        return 0
    return start


def _is_regular(file: BinaryIO) -> bool:
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


class _StandardInput:
    """Copies standard input to a file, from which tasks read it."""

    def __init__(self, stream: BinaryIO) -> None:
        descriptor, self.path = tempfile.mkstemp(prefix="barnabas-connect-stdin-")
        self._stream = stream
        self._copy = os.fdopen(descriptor, "wb", buffering=0)
        threading.Thread(target=self._run, name="connect-stdin", daemon=True).start()

    def _run(self) -> None:
        try:
            while data := os.read(self._stream.fileno(), READ_BYTES):
                self._copy.write(data)
        except (OSError, ValueError) as error:
            log.debug("Standard input is not read any more: %s", error)

    def close(self) -> None:
        self._copy.close()
        Path(self.path).unlink(missing_ok=True)


# Sink


class FileStreamSink(SinkConnector):
    """Appends the values of records to a file, each in a line."""

    version = "1.0"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                FILE,
                ConfigType.STRING,
                None,
                "The file to append to. Without it, standard output of the Connect process is "
                "written.",
                Importance.HIGH,
            )
        )

    def open(self, context: WriteContext) -> SinkWriter:
        path = self.settings[FILE]
        return FileStreamWriter(path, context) if path else StandardOutputWriter(context)

    def commit(self, reports: Sequence[WriteReport]) -> None:
        if self.settings[FILE]:
            return
        for report in reports:
            for lines in report.details or ():
                sys.stdout.buffer.write(lines)
        sys.stdout.flush()
        sys.stdout.buffer.flush()

    def check_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        return True


class _LineWriter(SinkWriter):
    """Has the positions, which are the ends of the ranges once all records were written."""

    def __init__(self, context: WriteContext) -> None:
        self._positions = {
            topic_partition: end for topic_partition, (_, end) in context.ranges.items()
        }


class FileStreamWriter(_LineWriter):
    """Appends to a file, at most some megabytes at a time."""

    def __init__(self, path: str, context: WriteContext) -> None:
        super().__init__(context)
        self._path = path
        self._lines: list[bytes] = []
        self._size_bytes = 0
        try:
            self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise _unwritable(path, error) from error

    def write(self, batch: ConnectBatch) -> None:
        for lines in _lines(batch):
            self._lines.append(lines)
            self._size_bytes += len(lines)
            if self._size_bytes >= WRITE_BYTES:
                self._flush()

    def close(self) -> WriteReport:
        try:
            self._flush()
            _sync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self._path, error) from error
        finally:
            self._file.close()
        return WriteReport(self._positions)

    def abort(self) -> None:
        self._file.close()

    def _flush(self) -> None:
        data = b"".join(self._lines)
        self._lines, self._size_bytes = [], 0
        if not data:
            return
        try:
            _append(self._file.fileno(), data)
        except OSError as error:
            raise _unwritable(self._path, error) from error


class StandardOutputWriter(_LineWriter):
    """Passes the lines to the driver, which writes them to its standard output."""

    def __init__(self, context: WriteContext) -> None:
        super().__init__(context)
        self._lines: list[bytes] = []

    def write(self, batch: ConnectBatch) -> None:
        self._lines += _lines(batch)

    def close(self) -> WriteReport:
        return WriteReport(self._positions, self._lines)


def _lines(batch: ConnectBatch) -> Iterator[bytes]:
    """Yields the values as text, in blocks of whole lines."""
    value = batch.value
    for start in range(0, len(value), 1 << 16):
        part = value.slice(start, 1 << 16)
        text = pc.fill_null(java_text(part, has_schema=batch.value_schema is not None), "null")
        ended = pc.binary_join_element_wise(text, "", "\n")
        if isinstance(ended, pa.ChunkedArray):
            ended = ended.combine_chunks()
        first, last = ended.offset, ended.offset + len(ended)
        offsets = np.frombuffer(ended.buffers()[1], np.int32)
        yield memoryview(ended.buffers()[2])[offsets[first] : offsets[last]].tobytes()


def _append(descriptor: int, data: bytes) -> None:
    """Writes all of the data or nothing, after what other writers have written."""
    is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
    if is_regular:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        size = os.fstat(descriptor).st_size
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
        except OSError:
            if is_regular:
                os.ftruncate(descriptor, size)
            raise
    finally:
        if is_regular:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a pipe or terminal
            raise


def _unwritable(path: str, error: OSError) -> ConnectError:
    message = f"File {path} cannot be written: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EAGAIN):
        return RetriableError(message)
    return ConnectError(message)
