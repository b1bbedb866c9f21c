"""Errors of single records: retried, tolerated or not, logged, and written to dead letters."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from barnabas.connect.converters.converter import RowError
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.execution.settings import MIN_RETRY_DELAY_MS, ErrorSettings

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

MAX_RETRY_MS = 60_000
"""How long a task retries by itself. Then its item fails, and is planned again."""

MAX_LINES = 20
"""Log lines of one item: the others are counted."""


class Stage(StrEnum):
    """Where a record failed, by Connect's names."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"


class ToleranceExceededError(ConnectError):
    """A record failed, and `errors.tolerance` is `none`."""


@dataclass(slots=True, frozen=True)
class FailedRecord:
    """A record that cannot be handled, with the bytes that it was read as."""

    topic: str
    partition: int | None
    offset: int | None
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    stage: Stage
    class_name: str
    """Of the plugin or connector that failed."""
    error: Exception


@dataclass(slots=True)
class ErrorSummary:
    """What became of the failed records of an item."""

    failed: int = 0
    lines: list[str] = field(default_factory=list)
    """For the log, if `errors.log.enable` is set."""


class RecordErrors:
    """Takes the failed records of one item."""

    def __init__(self, settings: ErrorSettings, connector: str, task: int) -> None:
        self.settings = settings
        self.connector = connector
        self.task = task
        self.failed: list[FailedRecord] = []
        """For the dead letter queue."""
        self.summary = ErrorSummary()

    def on_errors(
        self,
        stage: Stage,
        class_name: str,
        errors: Sequence[RowError],
        originals: Callable[[Sequence[int]], pa.RecordBatch],
    ) -> None:
        """Raises ToleranceExceededError unless errors are tolerated."""
        if not errors:
            return
        if not self.settings.is_tolerant:
            raise tolerance_exceeded(errors[0].error, stage)
        self.summary.failed += len(errors)
        if not (self.settings.dead_letter_topic or self.settings.is_logged):
            return
        for failed in _failed_records(stage, class_name, errors, originals):
            if self.settings.dead_letter_topic:
                self.failed.append(failed)
            if self.settings.is_logged and len(self.summary.lines) < MAX_LINES:
                self.summary.lines.append(self._line(failed))

    def retry(self, operation: Callable[[], T]) -> T:
        """Repeats an operation that raises RetriableError, as long as `errors.retry.timeout`."""
        retries = Retries(self.settings)
        while True:
            try:
                return operation()
            except RetriableError:
                if not retries.wait():
                    raise

    def _line(self, failed: FailedRecord) -> str:
        """Returns Connect's log line."""
        line = (
            f"Error encountered in task {self.connector}-{self.task}. Executing stage "
            f"'{failed.stage}' with class '{failed.class_name}'"
        )
        if self.settings.includes_records:
            line += (
                f", where record is {{topic='{failed.topic}', partition={failed.partition}, "
                f"offset={failed.offset}, timestamp={failed.timestamp_ms}}}"
            )
        return f"{line}. {exception_class(failed.error)}: {failed.error}"


class Retries:
    """The pauses between the attempts of an operation."""

    def __init__(self, settings: ErrorSettings) -> None:
        limit_ms = settings.retry_timeout_ms
        self._timeout_ms = MAX_RETRY_MS if limit_ms < 0 else min(limit_ms, MAX_RETRY_MS)
        self._max_delay_ms = settings.retry_delay_max_ms
        self._deadline_s = time.monotonic() + self._timeout_ms / 1000
        self.attempts = 0

    def wait(self) -> bool:
        """Pauses. Returns False at once if there is no time for another attempt."""
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        delay_ms = min(MIN_RETRY_DELAY_MS << min(self.attempts, 20), self._max_delay_ms)
        time.sleep(min(delay_ms / 1000, left_s))
        self.attempts += 1
        return True


def exception_class(error: BaseException) -> str:
    """Returns the class that Connect reports for an error."""
    if isinstance(error, ConnectError):
        return error.java_class
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def stack_trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def tolerance_exceeded(error: Exception, stage: Stage) -> ToleranceExceededError:
    """Returns Connect's error for a record that is not tolerated; its cause is in the trace."""
    exceeded = ToleranceExceededError(
        f"Tolerance exceeded in error handler: {stage}: {exception_class(error)}: {error}"
    )
    exceeded.__cause__ = error
    return exceeded


def _failed_records(
    stage: Stage,
    class_name: str,
    errors: Sequence[RowError],
    originals: Callable[[Sequence[int]], pa.RecordBatch],
) -> list[FailedRecord]:
    rows = originals([each.row for each in errors])
    columns = [
        rows.column(name).to_pylist()
        for name in ("topic", "partition", "offset", "key", "value", "headers")
    ]
    timestamps = _milliseconds(rows.column("timestamp"))
    return [
        FailedRecord(
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp_ms=timestamp_ms,
            key=key,
            value=value,
            headers=[(header["key"], header["value"]) for header in headers or ()],
            stage=stage,
            class_name=class_name,
            error=each.error,
        )
        for each, timestamp_ms, topic, partition, offset, key, value, headers in zip(
            errors, timestamps, *columns, strict=True
        )
    ]


def _milliseconds(timestamps: pa.Array) -> list[int | None]:
    import pyarrow as pa

    as_ms = timestamps.cast(pa.timestamp("ms", "UTC"), safe=False)
    return list(as_ms.cast(pa.int64()).to_pylist())
