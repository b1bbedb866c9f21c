"""The settings that the source and the sink of databases share."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.connect.config_def import (
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    at_least,
    invalid_value,
    one_of,
)
from barnabas.connect.connectors.jdbc.database import ConnectionPool
from barnabas.connect.connectors.jdbc.dialect import Dialect
from barnabas.connect.connectors.jdbc.postgresql import PostgresqlDialect
from barnabas.connect.connectors.jdbc.sqlite import SqliteDialect
from barnabas.connect.connectors.jdbc.url import DatabaseKind, DatabaseUrl, parse_url
from barnabas.connect.errors import InvalidConfigError

CONNECTION_URL = "connection.url"
CONNECTION_USER = "connection.user"
CONNECTION_PASSWORD = "connection.password"
CONNECTION_ATTEMPTS = "connection.attempts"
CONNECTION_BACKOFF_MS = "connection.backoff.ms"
DIALECT_NAME = "dialect.name"
DB_TIMEZONE = "db.timezone"
QUOTE_IDENTIFIERS = "quote.sql.identifiers"

_DIALECTS = {"PostgreSqlDatabaseDialect": DatabaseKind.POSTGRESQL} | {
    "SqliteDatabaseDialect": DatabaseKind.SQLITE
}


def connection_settings(*, is_url_required: bool) -> list[ConnectorSetting]:
    group = "Database"
    url = ConnectorSetting(
        CONNECTION_URL,
        ConfigType.STRING,
        "",
        "The database: jdbc:postgresql://HOST:PORT/DATABASE or jdbc:sqlite:FILE; jdbc: may be "
        "left out.",
        Importance.HIGH,
        _validate_url,
        group,
    )
    if is_url_required:
        url = ConnectorSetting(
            url.name,
            url.type,
            doc=url.doc,
            importance=url.importance,
            validator=url.validator,
            group=group,
        )
    return [
        url,
        ConnectorSetting(
            CONNECTION_USER, ConfigType.STRING, None, "The user.", Importance.HIGH, group=group
        ),
        ConnectorSetting(
            CONNECTION_PASSWORD,
            ConfigType.PASSWORD,
            None,
            "The password of the user.",
            Importance.HIGH,
            group=group,
        ),
        ConnectorSetting(
            CONNECTION_ATTEMPTS,
            ConfigType.INT,
            3,
            "How often to try to connect before it is an error.",
            Importance.LOW,
            at_least(1),
            group,
        ),
        ConnectorSetting(
            CONNECTION_BACKOFF_MS,
            ConfigType.LONG,
            10_000,
            "The pause between attempts to connect.",
            Importance.LOW,
            at_least(0),
            group,
        ),
        ConnectorSetting(
            DIALECT_NAME,
            ConfigType.STRING,
            "",
            "The kind of database; the default is that of the URL.",
            Importance.LOW,
            one_of("", *_DIALECTS),
            group,
        ),
        ConnectorSetting(
            DB_TIMEZONE,
            ConfigType.STRING,
            "UTC",
            "The time zone of times that the database stores without one.",
            Importance.MEDIUM,
            _validate_timezone,
            group,
        ),
        ConnectorSetting(
            QUOTE_IDENTIFIERS,
            ConfigType.STRING,
            "always",
            "Whether names in statements are quoted. Names without quotes match in any case.",
            Importance.MEDIUM,
            one_of("always", "never", ignore_case=True),
            group,
        ),
    ]


def database_url(settings: Mapping[str, Any], originals: Mapping[str, str]) -> DatabaseUrl:
    known = (
        CONNECTION_URL,
        CONNECTION_USER,
        CONNECTION_PASSWORD,
        CONNECTION_ATTEMPTS,
        CONNECTION_BACKOFF_MS,
    )
    options = {
        name.removeprefix("connection."): value
        for name, value in originals.items()
        if name.startswith("connection.") and name not in known
    }
    url = parse_url(
        settings[CONNECTION_URL],
        settings[CONNECTION_USER],
        settings[CONNECTION_PASSWORD],
        options,
    )
    dialect = settings[DIALECT_NAME]
    if dialect and _DIALECTS[dialect] is not url.kind:
        raise InvalidConfigError(
            f"{DIALECT_NAME} {dialect} does not fit connection.url {url.shown}."
        )
    return url


def connection_pool(url: DatabaseUrl, settings: Mapping[str, Any]) -> ConnectionPool:
    return ConnectionPool(url, settings[CONNECTION_ATTEMPTS], settings[CONNECTION_BACKOFF_MS])


def dialect_of(url: DatabaseUrl, settings: Mapping[str, Any]) -> Dialect:
    kind = PostgresqlDialect if url.kind is DatabaseKind.POSTGRESQL else SqliteDialect
    return kind(
        quotes=settings[QUOTE_IDENTIFIERS].lower() == "always", timezone=settings[DB_TIMEZONE]
    )


def add_error(values: list[ConfigValueInfo], name: str, message: str) -> None:
    """Adds an error about a value to the results of validation."""
    for value in values:
        if value.name == name:
            value.errors.append(invalid_value(name, value.value, message))


def parsed_values(values: list[ConfigValueInfo]) -> dict[str, Any] | None:
    """Returns the settings, or None if one of them has an error."""
    if any(value.errors for value in values):
        return None
    return {value.name: value.value for value in values}


def _validate_url(name: str, value: Any) -> str | None:
    try:
        parse_url(value or "")
    except InvalidConfigError as error:
        return str(error)
    return None


def _validate_timezone(name: str, value: Any) -> str | None:
    try:
        datetime.datetime.now(ZoneInfo(value))
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        return "Invalid time zone identifier"
    return None
