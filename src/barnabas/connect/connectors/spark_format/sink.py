"""Writes topics to a Spark format."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    at_least,
    one_of,
)
from barnabas.connect.connector import SinkConnector, SinkWriter, WriteContext
from barnabas.connect.connectors.spark_format import session_checks
from barnabas.connect.connectors.spark_format.columns import columns_of, inferred_columns
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
from barnabas.connect.converters.converter import RowError
from barnabas.connect.errors import ConnectError, DataError
from barnabas.connect.execution.dead_letters import ensure_dead_letter_topic
from barnabas.connect.execution.first_records import first_records
from barnabas.connect.execution.pipeline import Pipeline, pipeline_for
from barnabas.connect.execution.record_errors import RecordErrors, Stage
from barnabas.connect.execution.settings import (
    ErrorSettings,
    PipelineSettings,
    client_settings,
    error_settings,
    pipeline_settings,
)
from barnabas.connect.execution.sink_work import sink_group, sink_topics
from barnabas.connect.execution.tracked_batch import TrackedBatch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from barnabas.connect.execution.work import WorkerSettings

log = logging.getLogger("barnabas.connect")

OUTPUT_MODE: Final = "output.mode"
ON_NULL_VALUES: Final = "behavior.on.null.values"
MAX_RECORDS: Final = "max.records.per.batch"
OUTPUT_MODES: Final = ("append", "update")

INFERRED_FROM: Final = 1000
"""Records whose columns are those of the frame, if no schema is set."""

_NOT_FOR_THE_SOURCE: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.id",
    "interceptor.classes",
    "key.deserializer",
    "value.deserializer",
)


class SparkSink(SinkConnector):
    """Writes topics as a stream of any Spark format. `build_query` is all that runs."""

    runs_own_query: ClassVar[bool] = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return SHARED_SETTINGS + ConfigDef(
            ConnectorSetting(
                SCHEMA,
                ConfigType.STRING,
                "",
                "The columns: `id BIGINT, name STRING`. Without it, they are those of the first "
                f"{INFERRED_FROM} records of the topics, at each start of the connector.",
            ),
            ConnectorSetting(
                KEY_COLUMN,
                ConfigType.STRING,
                "",
                "The column for the key of records. Without it, keys are not written.",
            ),
            ConnectorSetting(
                OUTPUT_MODE,
                ConfigType.STRING,
                OUTPUT_MODES[0],
                "The output mode of the query: most formats have only `append`.",
                validator=one_of(*OUTPUT_MODES),
            ),
            ConnectorSetting(
                ON_NULL_VALUES,
                ConfigType.STRING,
                "ignore",
                "What happens to records without a value: with `ignore` they are left out, with "
                "`fail` they are errors.",
                validator=one_of("ignore", "fail"),
            ),
            ConnectorSetting(
                MAX_RECORDS,
                ConfigType.LONG,
                1_000_000,
                "The greatest number of records of a micro-batch.",
                validator=at_least(1),
            ),
        )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        values = super().validate(config)
        check_names(config, values)
        session = session_checks.running_session()
        if session is not None and not any(value.errors for value in values):
            _check_format(session, values)
        return values

    def open(self, context: WriteContext) -> SinkWriter:
        raise ConnectError("A Spark format is written by a streaming query.")

    def build_query(
        self, session: SparkSession, config: Mapping[str, str], worker: WorkerSettings
    ) -> StreamingQuery:
        """Starts the query. Raises an error of Spark, or ConnectError."""
        from barnabas.connect.connectors.spark_format.group_commits import GroupCommits

        settings = self.settings
        producer = client_settings("producer", config, worker.client("producer"))
        admin = client_settings("admin", config, worker.client("admin"))
        consumer = client_settings("consumer", config, worker.client("consumer"))
        errors = error_settings(config)
        pipeline = pipeline_settings(config, worker.originals)
        if errors.dead_letter_topic:
            ensure_dead_letter_topic(admin, errors)
        schema = self._schema(pipeline, config, consumer)
        to_rows = RecordsToRows(
            self.name,
            _arrow_schema(schema),
            settings[KEY_COLUMN],
            settings[ON_NULL_VALUES] == "fail",
            str(config.get("connector.class", "")),
            pipeline,
            errors,
            producer,
        )
        writer = (
            self._records(session, config, consumer)
            .mapInArrow(to_rows, schema)
            .writeStream.format(registered_format(session, settings[FORMAT]))
            .options(**options_of(config))
            .outputMode(settings[OUTPUT_MODE])
            .option("checkpointLocation", checkpoint_location(settings, self.name, worker))
            .queryName(f"connect-{self.name}")
        )
        commits = GroupCommits(
            session, f"connect-{self.name}", sink_group(self.name, config), source_client(consumer)
        )
        session.streams.addListener(commits)
        if settings[TRIGGER_INTERVAL_MS]:
            writer = writer.trigger(processingTime=f"{settings[TRIGGER_INTERVAL_MS]} milliseconds")
        try:
            return writer.start()
        except BaseException:
            session.streams.removeListener(commits)
            raise

    def _records(
        self, session: SparkSession, config: Mapping[str, str], consumer: Mapping[str, str]
    ) -> DataFrame:
        topics = sink_topics(config)
        reset = consumer.get("auto.offset.reset", "earliest").strip().lower()
        options = {f"kafka.{name}": text for name, text in source_client(consumer).items()}
        if topics.pattern is None:
            options["subscribe"] = ",".join(topics.names)
        else:
            options["subscribePattern"] = topics.pattern.pattern
        return (
            session.readStream.format("barnabas")
            .options(**options)
            .option("includeHeaders", "true")
            .option("startingOffsets", "latest" if reset == "latest" else "earliest")
            .option("failOnDataLoss", str(reset == "none").lower())
            .option("maxOffsetsPerTrigger", str(self.settings[MAX_RECORDS]))
            .load()
        )

    def _schema(
        self, settings: PipelineSettings, config: Mapping[str, str], consumer: Mapping[str, str]
    ) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        pipeline = pipeline_for(settings)
        if self.settings[SCHEMA]:
            return session_checks.parsed_schema(self.settings[SCHEMA])
        batches = [
            each.batch
            for raw in first_records(consumer, sink_topics(config), INFERRED_FROM)
            for each in pipeline.from_records(
                raw, RecordErrors(ErrorSettings(is_tolerant=True), self.name, 0)
            )
        ]
        with_values = [each for each in batches if each.value.null_count < len(each)]
        if not with_values:
            raise ConnectError(
                "The topics have no records whose columns could be those of the frame. The "
                f"connector starts when they have, or if {SCHEMA} is set."
            )
        columns = inferred_columns(with_values, self.settings[KEY_COLUMN])
        log.info("%s: the columns are %s", self.name, ", ".join(map(str, columns)))
        return from_arrow_schema(_microseconds(columns))


def source_client(consumer: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that the source of pipelines takes."""
    return {name: text for name, text in consumer.items() if name not in _NOT_FOR_THE_SOURCE}


def _arrow_schema(schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _microseconds(columns: pa.Schema) -> pa.Schema:
    """Returns columns whose times of day have a type that Spark reads."""
    import pyarrow as pa

    for index, field in enumerate(columns):
        if pa.types.is_time32(field.type):
            columns = columns.set(index, field.with_type(pa.time64("us")))
    return columns


def _check_format(session: SparkSession, values: list[ConfigValueInfo]) -> None:
    settings = {value.name: value.value for value in values}
    try:
        complaint = session_checks.can_write_stream(
            session, registered_format(session, settings[FORMAT])
        )
    except ConnectError as error:
        complaint = str(error)
    if complaint is not None:
        value_named(values, FORMAT).errors.append(complaint)
    if settings[SCHEMA]:
        try:
            session_checks.parsed_schema(settings[SCHEMA])
        except Exception as error:
            value_named(values, SCHEMA).errors.append(session_checks.reason(error))


@dataclass(slots=True, frozen=True)
class RecordsToRows:
    """Converts and transforms records in a task, and gives them columns."""

    connector: str
    schema: pa.Schema
    key_column: str
    fails_on_null: bool
    class_name: str
    pipeline: PipelineSettings
    errors: ErrorSettings
    producer: Mapping[str, str]
    """For the dead letter queue."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from barnabas.connect.connectors.spark_format.dead_letters import (
            log_errors,
            send_dead_letters,
            task_number,
        )

        pipeline = pipeline_for(self.pipeline)
        for raw in batches:
            errors = RecordErrors(self.errors, self.connector, task_number())
            yield from self._rows(pipeline, raw, errors)
            send_dead_letters(errors, self.producer)
            log_errors(errors)

    def _rows(
        self, pipeline: Pipeline, raw: pa.RecordBatch, errors: RecordErrors
    ) -> Iterator[pa.RecordBatch]:
        for tracked in pipeline.from_records(raw, errors):
            with_values = self._with_values(tracked, raw, errors)
            if not len(with_values.batch):
                continue
            rows, failed = columns_of(with_values.batch, self.schema, self.key_column)
            self._report(with_values, failed, raw, errors)
            if rows.num_rows:
                yield rows

    def _with_values(
        self, tracked: TrackedBatch, raw: pa.RecordBatch, errors: RecordErrors
    ) -> TrackedBatch:
        import pyarrow.compute as pc

        if not tracked.batch.value.null_count:
            return tracked
        if self.fails_on_null:
            missing = pc.indices_nonzero(tracked.batch.value.is_null()).to_pylist()
            error = DataError("The record has no value.")
            self._report(tracked, [RowError(row, error) for row in missing], raw, errors)
        return tracked.filter(tracked.batch.value.is_valid())

    def _report(
        self,
        tracked: TrackedBatch,
        failed: list[RowError],
        raw: pa.RecordBatch,
        errors: RecordErrors,
    ) -> None:
        def originals(rows: Any) -> pa.RecordBatch:
            import pyarrow as pa

            return raw.take(pa.array(rows, pa.int64()))

        errors.on_errors(
            Stage.TASK_PUT, self.class_name, tracked.original_errors(failed), originals
        )
