"""Reads a Spark format into a topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    not_empty,
    one_of,
)
from barnabas.connect.connector import Partition, Position, SourceBatch, SourceConnector
from barnabas.connect.connectors.spark_format import session_checks
from barnabas.connect.connectors.spark_format.settings import (
    FORMAT,
    KEY_COLUMN,
    SCHEMA,
    SHARED_SETTINGS,
    TRIGGER_INTERVAL_MS,
    check_names,
    checkpoint_location,
    options_of,
    registered_format,
    value_named,
)
from barnabas.connect.data.batch import ConnectBatch, source_batch
from barnabas.connect.data.conform import conform
from barnabas.connect.data.schema import ConnectSchema, schema_from_arrow
from barnabas.connect.errors import ConnectError, InvalidConfigError
from barnabas.connect.execution.dead_letters import ensure_dead_letter_topic
from barnabas.connect.execution.oversized import without_oversized
from barnabas.connect.execution.pipeline import pipeline_for
from barnabas.connect.execution.record_errors import RecordErrors
from barnabas.connect.execution.settings import (
    ErrorSettings,
    PipelineSettings,
    client_settings,
    error_settings,
    pipeline_settings,
)
from barnabas.connect.execution.topic_creation import TopicCreator, TopicGroup, topic_groups

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.connect.execution.work import WorkerSettings

TOPIC: Final = "topic"
VALUE_COLUMN: Final = "value.column"
DELIVERY_GUARANTEE: Final = "delivery.guarantee"
GUARANTEES: Final = ("exactly-once", "at-least-once")

RECORD_COLUMNS: Final = (
    "topic STRING, key BINARY, value BINARY, partition INT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
"""What the sink of pipelines takes."""


class SparkSource(SourceConnector):
    """Reads a stream of any Spark format. `build_query` is all that runs."""

    runs_own_query: ClassVar[bool] = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return SHARED_SETTINGS + ConfigDef(
            ConnectorSetting(
                TOPIC,
                ConfigType.STRING,
                doc="The topic to write to.",
                importance=Importance.HIGH,
                validator=not_empty,
            ),
            ConnectorSetting(
                SCHEMA,
                ConfigType.STRING,
                "",
                "The columns, for formats that need them, such as files: `id BIGINT, name STRING`.",
            ),
            ConnectorSetting(
                KEY_COLUMN,
                ConfigType.STRING,
                "",
                "The column that is also the key of records. Without it, records have no key.",
            ),
            ConnectorSetting(
                VALUE_COLUMN,
                ConfigType.STRING,
                "",
                "The column that is the value of records. Without it, the value is a struct of all "
                "columns.",
            ),
            ConnectorSetting(
                DELIVERY_GUARANTEE,
                ConfigType.STRING,
                GUARANTEES[0],
                "`exactly-once` writes rows in transactions; `at-least-once` may write them again "
                "after an error.",
                validator=one_of(*GUARANTEES),
            ),
        )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        values = super().validate(config)
        check_names(config, values)
        session = session_checks.running_session()
        if session is not None and not any(value.errors for value in values):
            _check_stream(session, config, values)
        return values

    def partitions(self) -> Sequence[Partition]:
        return []

    def read(
        self, partition: Partition, position: Position | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        raise ConnectError("A Spark format is read by a streaming query.")

    def build_query(
        self, session: SparkSession, config: Mapping[str, str], worker: WorkerSettings
    ) -> StreamingQuery:
        """Starts the query. Raises an error of Spark, or ConnectError."""
        settings = self.settings
        producer = client_settings("producer", config, worker.client("producer"))
        admin = client_settings("admin", config, worker.client("admin"))
        errors = error_settings(config)
        pipeline = pipeline_settings(config, worker.originals)
        pipeline_for(pipeline)  # raises if settings are invalid
        if errors.dead_letter_topic:
            ensure_dead_letter_topic(admin, errors)
        frame = _frame(session, settings, config)
        _require_columns(frame, settings)
        to_records = RowsToRecords(
            self.name,
            settings[TOPIC],
            settings[KEY_COLUMN],
            settings[VALUE_COLUMN],
            pipeline,
            errors,
            topic_groups(config, worker.originals),
            producer,
            admin,
        )
        writer = (
            frame.mapInArrow(to_records, RECORD_COLUMNS)
            .writeStream.format("barnabas")
            .options(**{f"kafka.{name}": text for name, text in producer.items()})
            .option("deliveryGuarantee", settings[DELIVERY_GUARANTEE])
            .option("transactionalIdPrefix", f"connect-{worker.group_id}-{self.name}")
            .option("checkpointLocation", checkpoint_location(settings, self.name, worker))
            .queryName(f"connect-{self.name}")
        )
        if settings[TRIGGER_INTERVAL_MS]:
            writer = writer.trigger(processingTime=f"{settings[TRIGGER_INTERVAL_MS]} milliseconds")
        return writer.start()


def _frame(
    session: SparkSession, settings: Mapping[str, object], config: Mapping[str, str]
) -> DataFrame:
    reader = session.readStream.format(registered_format(session, str(settings[FORMAT])))
    if settings[SCHEMA]:
        reader = reader.schema(session_checks.parsed_schema(str(settings[SCHEMA])))
    return reader.options(**options_of(config)).load()


def _check_stream(
    session: SparkSession, config: Mapping[str, str], values: list[ConfigValueInfo]
) -> None:
    settings = {value.name: value.value for value in values}
    if settings[SCHEMA]:
        try:
            session_checks.parsed_schema(settings[SCHEMA])
        except Exception as error:
            value_named(values, SCHEMA).errors.append(session_checks.reason(error))
            return
    try:
        frame = _frame(session, settings, config)
    except Exception as error:
        value_named(values, FORMAT).errors.append(session_checks.reason(error))
        return
    for name in (KEY_COLUMN, VALUE_COLUMN):
        try:
            _require_columns(frame, {name: settings[name]})
        except ConnectError as error:
            value_named(values, name).errors.append(str(error))


def _require_columns(frame: DataFrame, settings: Mapping[str, object]) -> None:
    """Raises ConnectError unless the columns exist and Connect has the types of all columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    for name in (KEY_COLUMN, VALUE_COLUMN):
        column = settings.get(name)
        if column and column not in frame.columns:
            raise InvalidConfigError(
                f"Invalid value {column} for configuration {name}: the columns are "
                f"{', '.join(frame.columns)}"
            )
    for field in to_arrow_schema(frame.schema, timezone="UTC"):
        schema_from_arrow(field.type)


@dataclass(slots=True, frozen=True)
class RowsToRecords:
    """Transforms and converts rows in a task; dead letters become records of the same stream."""

    connector: str
    topic: str
    key_column: str
    value_column: str
    pipeline: PipelineSettings
    errors: ErrorSettings
    topic_groups: tuple[TopicGroup, ...]
    producer: Mapping[str, str]
    admin: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from barnabas.connect.connectors.spark_format.dead_letters import (
            dead_letter_rows,
            log_errors,
            task_number,
        )

        pipeline = pipeline_for(self.pipeline)
        creator = TopicCreator(self.admin, self.topic_groups)
        for rows in batches:
            if not rows.num_rows:
                continue
            errors = RecordErrors(self.errors, self.connector, task_number())
            for topic, encoded in pipeline.to_records(self.records(rows), errors):
                fitting = without_oversized(topic, encoded, self.producer, errors)
                if fitting.num_rows:
                    creator.ensure(topic)
                    yield _record_columns(topic, fitting)
            if errors.failed:
                yield _record_columns(self.errors.dead_letter_topic, dead_letter_rows(errors))
            log_errors(errors)

    def records(self, rows: pa.RecordBatch) -> ConnectBatch:
        value_schema, value = _column(rows, self.value_column)
        if not self.key_column:
            return source_batch(self.topic, value_schema, value)
        key_schema, key = _column(rows, self.key_column)
        return source_batch(self.topic, value_schema, value, key_schema, key)


def _column(rows: pa.RecordBatch, name: str) -> tuple[ConnectSchema, pa.Array]:
    """Returns a column, or a struct of all."""
    values = rows.column(name) if name else rows.to_struct_array()
    is_optional = bool(name) and rows.schema.field(name).nullable
    schema = schema_from_arrow(values.type, is_optional=is_optional)
    return schema, conform(values, schema.arrow_type())


def _record_columns(topic: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    from barnabas.connect.data.batch import headers_type

    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "partition": pa.int32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "headers": headers_type(),
    }
    columns = {
        name: rows.column(name).cast(type_)
        if name in rows.schema.names
        else pa.nulls(rows.num_rows, type_)
        for name, type_ in types.items()
    }
    topics = pa.repeat(pa.scalar(topic), rows.num_rows)
    return pa.RecordBatch.from_pydict({"topic": topics, **columns})
