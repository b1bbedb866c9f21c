"""The source of test data."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    at_least,
    invalid_value,
    not_empty,
    one_of,
)
from barnabas.connect.connector import Partition, Position, SourceBatch, SourceConnector
from barnabas.connect.connectors.datagen.generator import RecordGenerator
from barnabas.connect.connectors.datagen.quickstarts import QUICKSTARTS
from barnabas.connect.data.batch import headers_type, source_batch
from barnabas.connect.errors import ConnectError, InvalidConfigError

KAFKA_TOPIC = "kafka.topic"
MAX_INTERVAL = "max.interval"
ITERATIONS = "iterations"
QUICKSTART = "quickstart"
SCHEMA_STRING = "schema.string"
SCHEMA_FILENAME = "schema.filename"
KEY_FIELD = "schema.keyfield"
RANDOM_SEED = "random.seed"

TASK_ID = "task.id"
TASK_GENERATION = "task.generation"
CURRENT_ITERATION = "current.iteration"

BATCH_ROWS = 16_384
MIN_POLL_MS = 100


class Datagen(SourceConnector):
    version = "1.0"

    @classmethod
    def config_def(cls) -> ConfigDef:
        high, low = Importance.HIGH, Importance.LOW
        return ConfigDef(
            ConnectorSetting(
                KAFKA_TOPIC,
                ConfigType.STRING,
                doc="The topic to write to.",
                importance=high,
                validator=not_empty,
            ),
            ConnectorSetting(
                MAX_INTERVAL,
                ConfigType.LONG,
                500,
                "The longest pause between two rows of a task, in milliseconds.",
                high,
                at_least(0),
            ),
            ConnectorSetting(
                ITERATIONS,
                ConfigType.INT,
                -1,
                "After how many rows a task fails; -1 for never.",
                high,
            ),
            ConnectorSetting(
                SCHEMA_STRING,
                ConfigType.STRING,
                "",
                "An Avro schema with hints for values.",
                high,
            ),
            ConnectorSetting(
                SCHEMA_FILENAME,
                ConfigType.STRING,
                "",
                "A file with an Avro schema. Driver and tasks have to see it.",
                high,
            ),
            ConnectorSetting(
                KEY_FIELD,
                ConfigType.STRING,
                "",
                "The field that is the key of records.",
                high,
            ),
            ConnectorSetting(
                QUICKSTART,
                ConfigType.STRING,
                "",
                "The name of a schema that comes with the connector.",
                high,
                one_of("", *QUICKSTARTS, ignore_case=True),
            ),
            ConnectorSetting(
                RANDOM_SEED,
                ConfigType.LONG,
                None,
                "What the values are made from; by default another one for each connector.",
                low,
            ),
        )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        values = super().validate(config)
        by_name = {value.name: value for value in values}
        sources = (QUICKSTART, SCHEMA_STRING, SCHEMA_FILENAME)
        given = [name for name in sources if by_name[name].value]
        if any(value.errors for value in values):
            return values
        settings = {name: value.value for name, value in by_name.items()}
        if len(given) != 1:
            problem = f"Exactly one of {', '.join(sources)} has to be set"
            for name in given or [QUICKSTART]:
                by_name[name].errors.append(invalid_value(name, by_name[name].value, problem))
            return values
        try:
            _generator(settings)
        except InvalidConfigError as error:
            name = KEY_FIELD if isinstance(error, _UnknownKeyFieldError) else given[0]
            by_name[name].errors.append(invalid_value(name, by_name[name].value, str(error)))
        return values

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        for value in self.validate(config):
            for error in value.errors:
                raise InvalidConfigError(error)
        self._generator, self._key_field = _generator(self.settings)
        self._pause_ms: float = self.settings[MAX_INTERVAL] / 2
        """The pause between two rows, on average."""
        self.poll_interval_ms = max(MIN_POLL_MS, int(self._pause_ms)) if self._pause_ms else 1
        self._asked_s: dict[int, float] = {}
        self._read_s: dict[int, float] = {}

    def partitions(self) -> Sequence[Partition]:
        tasks = max(1, int(self.originals.get("tasks.max", "1")))
        return [{TASK_ID: task} for task in range(tasks)]

    def has_new(self, partition: Partition, position: Position | None) -> bool:
        if not self._pause_ms:
            return True
        now_s, task = time.monotonic(), partition[TASK_ID]
        asked_s = self._asked_s.setdefault(task, now_s)
        if now_s - asked_s < self.poll_interval_ms / 1000:
            return False
        self._asked_s[task] = now_s
        return True

    def read(
        self, partition: Partition, position: Position | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        task = partition[TASK_ID]
        position = position or {}
        seed = position.get(RANDOM_SEED)
        if seed is None or self.settings[RANDOM_SEED] is not None:
            seed = self.settings[RANDOM_SEED]
        if seed is None:
            seed = random.SystemRandom().getrandbits(63)
        generation = position.get(TASK_GENERATION, 0)
        start = position.get(CURRENT_ITERATION, 0)
        end = start + self._due(task, max_rows)
        iterations = self.settings[ITERATIONS]
        if 0 < iterations <= start:
            raise ConnectError(
                f"Stopping connector: generated the configured {iterations} number of messages"
            )
        if iterations > 0:
            end = min(end, iterations)
        for first in range(start, end, BATCH_ROWS):
            last = min(first + BATCH_ROWS, end)
            yield self._batch(task, generation, seed, first, last)

    def _due(self, task: int, max_rows: int) -> int:
        """Returns how many rows to make now: those of the time since the last read."""
        if not self._pause_ms:
            return max_rows
        now_s = time.monotonic()
        read_s = self._read_s.get(task)
        self._read_s[task] = now_s
        if read_s is None:
            return 1
        due = round((now_s - read_s) * 1000 / self._pause_ms)
        return max(1, min(max_rows, due))

    def _batch(self, task: int, generation: int, seed: int, start: int, end: int) -> SourceBatch:
        rows = self._generator.generate(seed, task, start, end - start)
        schema = self._generator.schema
        key_schema = key = None
        if self._key_field:
            field = schema.field(self._key_field)
            assert field is not None, "checked by configure"
            key_schema, key = field.schema, pc.struct_field(rows, self._key_field)
        records = source_batch(
            self.settings[KAFKA_TOPIC],
            schema,
            rows,
            key_schema,
            key,
            headers=_headers(task, generation, start, end),
        )
        position = {
            TASK_GENERATION: generation,
            CURRENT_ITERATION: end,
            RANDOM_SEED: seed,
        }
        return SourceBatch(records, position)

    def check_offsets(self, offsets: Sequence[tuple[Partition, Position | None]]) -> bool:
        for _, position in offsets:
            if position is not None and not isinstance(position.get(CURRENT_ITERATION), int):
                raise ConnectError(f"The offset needs the number '{CURRENT_ITERATION}'.")
        return True


class _UnknownKeyFieldError(InvalidConfigError):
    pass


def _generator(settings: Mapping[str, Any]) -> tuple[RecordGenerator, str]:
    """Returns what makes the rows, and the name of their key."""
    key_field = settings[KEY_FIELD]
    if settings[QUICKSTART]:
        quickstart = QUICKSTARTS[settings[QUICKSTART].lower()]
        generator = RecordGenerator(quickstart.schema)
        key_field = key_field or quickstart.key
    else:
        generator = RecordGenerator(_parse(_schema_text(settings)))
    if key_field and generator.schema.field(key_field) is None:
        names = ", ".join(field.name for field in generator.schema.fields)
        raise _UnknownKeyFieldError(f"The schema has no field '{key_field}'. It has: {names}")
    return generator, key_field


def _schema_text(settings: Mapping[str, Any]) -> str:
    if settings[SCHEMA_STRING]:
        text: str = settings[SCHEMA_STRING]
        return text
    path = settings[SCHEMA_FILENAME]
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfigError(f"Unable to read the schema from '{path}': {error}") from error


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidConfigError(f"Unable to parse the provided schema: {error}") from error


def _headers(task: int, generation: int, start: int, end: int) -> pa.Array:
    """Returns three headers for each row, as texts."""
    count = end - start
    names = pa.array([TASK_GENERATION, TASK_ID, CURRENT_ITERATION])
    keys = names.take(pa.array(np.tile(np.arange(3), count)))
    numbers = np.empty((count, 3), np.int64)
    numbers[:, 0], numbers[:, 1] = generation, task
    numbers[:, 2] = np.arange(start, end)
    values = pa.array(numbers.ravel()).cast(pa.string()).cast(pa.binary())
    entries = pa.StructArray.from_arrays([keys, values], ["key", "value"])
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * 3)
    return pa.ListArray.from_arrays(offsets, entries).cast(headers_type())
