"""The settings of the source, with Confluent's names and defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    at_least,
    one_of,
)
from barnabas.connect.connectors.jdbc.connection_settings import (
    add_error,
    connection_settings,
    parsed_values,
)

MODE: Final = "mode"
INCREMENTING_COLUMN: Final = "incrementing.column.name"
INCREMENTING_MAPPING: Final = "incrementing.column.mapping"
TIMESTAMP_COLUMNS: Final = "timestamp.column.name"
TIMESTAMP_MAPPING: Final = "timestamp.columns.mapping"
TIMESTAMP_INITIAL: Final = "timestamp.initial"
TIMESTAMP_DELAY_MS: Final = "timestamp.delay.interval.ms"
TIMESTAMP_GRANULARITY: Final = "timestamp.granularity"
VALIDATE_NON_NULL: Final = "validate.non.null"
QUERY: Final = "query"
QUERY_MASKED: Final = "query.masked"
QUERY_SUFFIX: Final = "query.suffix"
ISOLATION_MODE: Final = "transaction.isolation.mode"
TABLE_WHITELIST: Final = "table.whitelist"
TABLE_BLACKLIST: Final = "table.blacklist"
TABLE_INCLUDE: Final = "table.include.list"
TABLE_EXCLUDE: Final = "table.exclude.list"
TABLE_TYPES: Final = "table.types"
SCHEMA_PATTERN: Final = "schema.pattern"
CATALOG_PATTERN: Final = "catalog.pattern"
NUMERIC_MAPPING: Final = "numeric.mapping"
NUMERIC_PRECISION_MAPPING: Final = "numeric.precision.mapping"
POLL_INTERVAL_MS: Final = "poll.interval.ms"
TABLE_POLL_INTERVAL_MS: Final = "table.poll.interval.ms"
BATCH_MAX_ROWS: Final = "batch.max.rows"
TOPIC_PREFIX: Final = "topic.prefix"

BULK: Final = "bulk"
INCREMENTING: Final = "incrementing"
TIMESTAMP: Final = "timestamp"
TIMESTAMP_INCREMENTING: Final = "timestamp+incrementing"

_GRANULARITIES = (
    "connect_logical",
    "micros_long",
    "micros_string",
    "micros_iso_datetime_string",
    "nanos_long",
    "nanos_string",
    "nanos_iso_datetime_string",
)
_ISOLATION_MODES = (
    "DEFAULT",
    "READ_UNCOMMITTED",
    "READ_COMMITTED",
    "REPEATABLE_READ",
    "SERIALIZABLE",
)
_LEGACY_LISTS = (TABLE_WHITELIST, TABLE_BLACKLIST)
_LISTS = (TABLE_INCLUDE, TABLE_EXCLUDE)


def source_config_def() -> ConfigDef:
    low, medium, high = Importance.LOW, Importance.MEDIUM, Importance.HIGH
    boolean, integer, long = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
    string, names = ConfigType.STRING, ConfigType.LIST

    def database(
        name: str, type_: ConfigType, default: Any, doc: str, **more: Any
    ) -> ConnectorSetting:
        return ConnectorSetting(
            name, type_, default, doc, more.pop("importance", medium), group="Database", **more
        )

    def mode(name: str, type_: ConfigType, default: Any, doc: str, **more: Any) -> ConnectorSetting:
        return ConnectorSetting(
            name, type_, default, doc, more.pop("importance", medium), group="Mode", **more
        )

    def connector(
        name: str, type_: ConfigType, default: Any, doc: str, **more: Any
    ) -> ConnectorSetting:
        return ConnectorSetting(
            name, type_, default, doc, more.pop("importance", low), group="Connector", **more
        )

    return ConfigDef(
        *connection_settings(is_url_required=False),
        database(TABLE_WHITELIST, names, [], "The tables to read, by exact name."),
        database(TABLE_BLACKLIST, names, [], "The tables not to read, by exact name."),
        database(
            TABLE_INCLUDE,
            names,
            [],
            "Regular expressions; a table is read if one matches its whole name with its schema.",
            validator=_valid_patterns,
        ),
        database(
            TABLE_EXCLUDE,
            names,
            [],
            "Regular expressions for tables that are not read although they are included.",
            validator=_valid_patterns,
        ),
        database(
            CATALOG_PATTERN,
            string,
            None,
            "The catalogs to look for tables in; only the current one has an effect.",
        ),
        database(SCHEMA_PATTERN, string, None, "The schemas to look for tables in, as in LIKE."),
        database(
            NUMERIC_MAPPING,
            string,
            None,
            "What NUMERIC becomes: Decimal, or numbers where they are exact or good enough.",
            validator=_optional(
                one_of(
                    "none",
                    "precision_only",
                    "best_fit",
                    "best_fit_eager_double",
                    ignore_case=True,
                )
            ),
            importance=low,
        ),
        database(
            NUMERIC_PRECISION_MAPPING,
            boolean,
            False,
            "The same as numeric.mapping=precision_only.",
            importance=low,
        ),
        mode(
            MODE,
            string,
            "",
            "Which rows are new: all at each poll (bulk), those with a greater id (incrementing), "
            "a later time (timestamp), or both.",
            validator=_valid_mode,
            importance=high,
        ),
        mode(
            INCREMENTING_COLUMN,
            string,
            "",
            "The column with growing ids. The default is the column that the database counts up.",
        ),
        mode(TIMESTAMP_COLUMNS, names, [], "The columns with times; the first that is not null."),
        mode(
            INCREMENTING_MAPPING,
            names,
            [],
            "REGEX:COLUMN for each table.",
            validator=_valid_incrementing_mapping,
        ),
        mode(
            TIMESTAMP_MAPPING,
            names,
            [],
            "REGEX:[COLUMN|COLUMN] for each table.",
            validator=_valid_timestamp_mapping,
        ),
        mode(
            TIMESTAMP_INITIAL,
            long,
            None,
            "The time to begin after, in milliseconds; -1 is now.",
            importance=low,
            validator=_optional(at_least(-1)),
        ),
        mode(
            VALIDATE_NON_NULL,
            boolean,
            True,
            "Whether columns that decide which rows are new have to be NOT NULL.",
            importance=low,
        ),
        mode(QUERY, string, "", "A SELECT to read instead of tables. WHERE is added to it."),
        mode(QUERY_MASKED, ConfigType.PASSWORD, None, "The same, and not shown."),
        mode(QUERY_SUFFIX, string, "", "What is added to the end of statements.", importance=low),
        mode(
            ISOLATION_MODE,
            string,
            "DEFAULT",
            "The isolation of transactions that read.",
            importance=low,
            validator=one_of(*_ISOLATION_MODES, ignore_case=True),
        ),
        connector(TABLE_TYPES, names, ["TABLE"], "The kinds of tables to read, such as VIEW."),
        connector(
            POLL_INTERVAL_MS,
            integer,
            5000,
            "How often to look for new rows.",
            importance=high,
            validator=at_least(1),
        ),
        connector(
            BATCH_MAX_ROWS,
            integer,
            1000,
            "The number of rows after which a transaction may end.",
            validator=at_least(1),
        ),
        connector(
            TABLE_POLL_INTERVAL_MS,
            long,
            60_000,
            "How often to look for new tables.",
            validator=at_least(1),
        ),
        connector(
            TOPIC_PREFIX,
            string,
            "",
            "What topics' names begin with, before the table. With query, it is the topic.",
            importance=high,
            validator=_valid_prefix,
        ),
        connector(
            TIMESTAMP_DELAY_MS,
            long,
            0,
            "How old rows have to be, so that transactions with earlier times have ended.",
            importance=high,
            validator=at_least(0),
        ),
        connector(
            TIMESTAMP_GRANULARITY,
            string,
            "connect_logical",
            "What TIMESTAMP becomes: Connect's Timestamp of milliseconds, a number, or text.",
            validator=one_of(*_GRANULARITIES, ignore_case=True),
        ),
    )


def check_source_settings(values: list[ConfigValueInfo]) -> None:
    """Adds errors for settings that do not fit each other."""
    settings = parsed_values(values)
    if settings is None:
        return
    mode = settings[MODE]
    query = query_of(settings)
    lists = [name for name in (*_LEGACY_LISTS, *_LISTS) if settings[name]]
    if not settings["connection.url"]:
        add_error(values, "connection.url", "The database has to be given")
    if query:
        _check_query(values, settings, query, lists)
    else:
        for first, second in ((TABLE_WHITELIST, TABLE_BLACKLIST),):
            if settings[first] and settings[second]:
                add_error(values, first, f"{first} and {second} are exclusive")
        if settings[TABLE_EXCLUDE] and not settings[TABLE_INCLUDE]:
            add_error(values, TABLE_EXCLUDE, f"{TABLE_EXCLUDE} needs {TABLE_INCLUDE}")
    _check_columns(values, settings, mode)


def _check_query(
    values: list[ConfigValueInfo], settings: Mapping[str, Any], query: str, lists: list[str]
) -> None:
    name = QUERY if settings[QUERY] else QUERY_MASKED
    if lists:
        add_error(values, name, f"{name} cannot be combined with {', '.join(lists)}")
    if settings[QUERY] and settings[QUERY_MASKED]:
        add_error(values, QUERY, f"{QUERY} and {QUERY_MASKED} are exclusive")
    if not re.match(r"(?is)\s*(select|with)\b", query):
        add_error(values, name, "Only SELECT statements are supported")
    for mapping in (INCREMENTING_MAPPING, TIMESTAMP_MAPPING):
        if settings[mapping]:
            add_error(values, mapping, f"{mapping} is for tables, not for {name}")
    if "incrementing" in settings[MODE] and not settings[INCREMENTING_COLUMN]:
        add_error(values, INCREMENTING_COLUMN, f"A column has to be given with {name}")


def _check_columns(values: list[ConfigValueInfo], settings: Mapping[str, Any], mode: str) -> None:
    uses_time = "timestamp" in mode
    if uses_time and not settings[TIMESTAMP_COLUMNS] and not settings[TIMESTAMP_MAPPING]:
        add_error(values, TIMESTAMP_COLUMNS, f"Columns have to be given for mode {mode}")
    for old, new in (
        (INCREMENTING_COLUMN, INCREMENTING_MAPPING),
        (TIMESTAMP_COLUMNS, TIMESTAMP_MAPPING),
    ):
        if settings[old] and settings[new]:
            add_error(values, new, f"{new} and {old} are exclusive")
    new_names = [
        name for name in (*_LISTS, INCREMENTING_MAPPING, TIMESTAMP_MAPPING) if settings[name]
    ]
    old_names = [
        name for name in (*_LEGACY_LISTS, INCREMENTING_COLUMN, TIMESTAMP_COLUMNS) if settings[name]
    ]
    if new_names and old_names:
        add_error(
            values,
            new_names[0],
            f"{', '.join(new_names)} cannot be mixed with {', '.join(old_names)}",
        )


def query_of(settings: Mapping[str, Any]) -> str:
    return (settings[QUERY] or settings[QUERY_MASKED] or "").strip().rstrip(";")


def _optional(validator: Any) -> Any:
    return lambda name, value: None if value is None else validator(name, value)


def _valid_mode(name: str, value: Any) -> str | None:
    modes = (BULK, INCREMENTING, TIMESTAMP, TIMESTAMP_INCREMENTING)
    if not value:
        return f"Mode must be set to one of: {', '.join(modes)}"
    return one_of(*modes)(name, value)


def _valid_prefix(name: str, value: Any) -> str | None:
    if value and (len(value) > 249 or not re.fullmatch(r"[a-zA-Z0-9._-]+", value)):
        return "A topic's name has at most 249 letters, digits, dots, hyphens and underscores"
    return None


def _valid_patterns(name: str, value: Any) -> str | None:
    for pattern in value or ():
        try:
            re.compile(pattern)
        except re.error as error:
            return f"'{pattern}' is no regular expression: {error}"
    return None


def incrementing_mapping(entries: list[str]) -> list[tuple[str, str]]:
    """Returns the pattern and the column of each entry."""
    split = (entry.rpartition(":") for entry in entries)
    return [(pattern.strip(), column.strip()) for pattern, _, column in split]


def timestamp_mapping(entries: list[str]) -> list[tuple[str, list[str]]]:
    """Returns the pattern and the columns of each entry."""
    found = []
    for entry in entries:
        pattern, _, columns = entry.rpartition(":")
        names = columns.strip().removeprefix("[").removesuffix("]").split("|")
        found.append((pattern.strip(), [name.strip() for name in names]))
    return found


def _valid_incrementing_mapping(name: str, value: Any) -> str | None:
    for entry in value or ():
        pattern, _, column = entry.rpartition(":")
        if not pattern or not column.strip():
            return f"'{entry}' is not REGEX:COLUMN"
    return _valid_patterns(name, [entry.rpartition(":")[0] for entry in value or ()])


def _valid_timestamp_mapping(name: str, value: Any) -> str | None:
    for entry in value or ():
        if not re.fullmatch(r".+:\s*\[[^\[\]|]+(\|[^\[\]|]+)*\]\s*", entry):
            return f"'{entry}' is not REGEX:[COLUMN|COLUMN]"
    return _valid_patterns(name, [entry.rpartition(":")[0] for entry in value or ()])
