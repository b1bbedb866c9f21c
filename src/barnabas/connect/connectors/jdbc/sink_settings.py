"""The settings of the sink, with Confluent's names."""

from __future__ import annotations

from typing import Any, Final

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    at_least,
    not_empty,
    one_of,
)
from barnabas.connect.connectors.jdbc.connection_settings import (
    add_error,
    connection_settings,
    parsed_values,
)

INSERT_MODE: Final = "insert.mode"
BATCH_SIZE: Final = "batch.size"
DELETE_ENABLED: Final = "delete.enabled"
TABLE_TYPES: Final = "table.types"
REPLACE_NULL: Final = "replace.null.with.default"
TABLE_NAME_FORMAT: Final = "table.name.format"
PK_MODE: Final = "pk.mode"
PK_FIELDS: Final = "pk.fields"
FIELDS_WHITELIST: Final = "fields.whitelist"
TIMESTAMP_FIELDS: Final = "timestamp.fields.list"
TIMESTAMP_PRECISION: Final = "timestamp.precision.mode"
STRING_COLUMN: Final = "string.output.value.column.name"
AUTO_CREATE: Final = "auto.create"
AUTO_EVOLVE: Final = "auto.evolve"
MAX_RETRIES: Final = "max.retries"
RETRY_BACKOFF_MS: Final = "retry.backoff.ms"
EXACTLY_ONCE: Final = "barnabas.exactly.once"

INSERT: Final = "insert"
UPSERT: Final = "upsert"
UPDATE: Final = "update"

KEY_NONE: Final = "none"
KEY_KAFKA: Final = "kafka"
KEY_RECORD_KEY: Final = "record_key"
KEY_RECORD_VALUE: Final = "record_value"

KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")

DEFAULT_BATCH_SIZE = 100_000


def sink_config_def() -> ConfigDef:
    low, medium, high = Importance.LOW, Importance.MEDIUM, Importance.HIGH
    writes, mapping, ddl, retries = "Writes", "Data Mapping", "DDL Support", "Retries"

    def setting(
        group: str, name: str, type_: ConfigType, default: Any, doc: str, **more: Any
    ) -> ConnectorSetting:
        return ConnectorSetting(
            name, type_, default, doc, more.pop("importance", medium), group=group, **more
        )

    return ConfigDef(
        *connection_settings(is_url_required=True),
        setting(
            writes,
            INSERT_MODE,
            ConfigType.STRING,
            INSERT,
            "insert adds rows; upsert also replaces those with the same key; update only changes "
            "rows that exist.",
            importance=high,
            validator=one_of(INSERT, UPSERT, UPDATE, ignore_case=True),
        ),
        setting(
            writes,
            BATCH_SIZE,
            ConfigType.INT,
            DEFAULT_BATCH_SIZE,
            "The number of rows that are collected for one statement.",
            validator=at_least(1),
        ),
        setting(
            writes,
            DELETE_ENABLED,
            ConfigType.BOOLEAN,
            False,
            "Whether a record without value deletes the row of its key. Needs pk.mode=record_key.",
        ),
        setting(
            writes,
            TABLE_TYPES,
            ConfigType.LIST,
            ["TABLE", "PARTITIONED TABLE"],
            "The kinds of tables that may be written to, such as VIEW.",
            importance=low,
        ),
        setting(
            writes,
            REPLACE_NULL,
            ConfigType.BOOLEAN,
            True,
            "Whether the default value of a field's schema is written instead of null.",
        ),
        setting(
            writes,
            EXACTLY_ONCE,
            ConfigType.BOOLEAN,
            None,
            "Whether the offsets of records are kept in a table of the database, in the "
            "transactions that write their rows. The default is to do so if the user may create "
            "the table.",
        ),
        setting(
            mapping,
            TABLE_NAME_FORMAT,
            ConfigType.STRING,
            "${topic}",
            "The name of the table for a topic, perhaps with its schema.",
            validator=not_empty,
        ),
        setting(
            mapping,
            PK_MODE,
            ConfigType.STRING,
            KEY_NONE,
            "Where the primary key is from: none, kafka (topic, partition, offset), record_key or "
            "record_value.",
            importance=high,
            validator=one_of(
                KEY_NONE, KEY_KAFKA, KEY_RECORD_KEY, KEY_RECORD_VALUE, ignore_case=True
            ),
        ),
        setting(
            mapping,
            PK_FIELDS,
            ConfigType.LIST,
            [],
            "The columns of the primary key. By default all fields of the key or value, or "
            f"{', '.join(KAFKA_COLUMNS)}.",
        ),
        setting(
            mapping,
            FIELDS_WHITELIST,
            ConfigType.LIST,
            [],
            "The fields of the value that are written; by default all.",
        ),
        setting(
            mapping,
            TIMESTAMP_FIELDS,
            ConfigType.LIST,
            [],
            "Fields with numbers or texts that are written as TIMESTAMP.",
        ),
        setting(
            mapping,
            TIMESTAMP_PRECISION,
            ConfigType.STRING,
            "microseconds",
            "The unit of the numbers in timestamp.fields.list.",
            importance=low,
            validator=one_of("microseconds", "nanoseconds", ignore_case=True),
        ),
        setting(
            mapping,
            STRING_COLUMN,
            ConfigType.STRING,
            "record_value",
            "The column for values that are strings.",
            importance=low,
            validator=not_empty,
        ),
        setting(
            ddl,
            AUTO_CREATE,
            ConfigType.BOOLEAN,
            False,
            "Whether to create a missing table from the schema of the records.",
        ),
        setting(
            ddl,
            AUTO_EVOLVE,
            ConfigType.BOOLEAN,
            False,
            "Whether to add columns for new fields that are optional or have a default.",
        ),
        setting(
            retries,
            MAX_RETRIES,
            ConfigType.INT,
            10,
            "How often records are written again after an error that may go away.",
            validator=at_least(0),
        ),
        setting(
            retries,
            RETRY_BACKOFF_MS,
            ConfigType.INT,
            3000,
            "The pause before they are written again.",
            validator=at_least(0),
        ),
    )


def check_sink_settings(values: list[ConfigValueInfo]) -> None:
    """Adds errors for settings that do not fit each other."""
    settings = parsed_values(values)
    if settings is None:
        return
    key_mode, fields = settings[PK_MODE].lower(), settings[PK_FIELDS]
    if settings[DELETE_ENABLED] and key_mode != KEY_RECORD_KEY:
        add_error(values, DELETE_ENABLED, f"Deletes need {PK_MODE}={KEY_RECORD_KEY}")
    if settings[INSERT_MODE].lower() != INSERT and key_mode == KEY_NONE:
        add_error(values, INSERT_MODE, f"It needs a primary key: set {PK_MODE}")
    if key_mode == KEY_KAFKA and fields and len(fields) != len(KAFKA_COLUMNS):
        add_error(
            values,
            PK_FIELDS,
            f"{PK_MODE}={KEY_KAFKA} needs three columns, for topic, partition and offset",
        )
