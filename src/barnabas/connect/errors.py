"""The errors of Connect, with the names that its REST API, traces and dead letters report.

Raise `RetriableError` for what may succeed later, `DataError` for a record that cannot be handled,
and `ConnectError` for everything else that stops a task.
"""

from typing import ClassVar


class ConnectError(Exception):
    """A connector or its framework failed. The message says what the operator can do."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"
    """The class that Kafka Connect reports for the same error."""


class RetriableError(ConnectError):
    """The operation may succeed if it is repeated later, for example because the target is down."""

    java_class = "org.apache.kafka.connect.errors.RetriableException"


class DataError(ConnectError):
    """A record cannot be converted, transformed or written; other records can."""

    java_class = "org.apache.kafka.connect.errors.DataException"


class SchemaBuildError(DataError):
    """A schema is not valid."""

    java_class = "org.apache.kafka.connect.errors.SchemaBuilderException"


class IllegalFieldError(DataError):
    """A field that the settings name does not exist."""

    java_class = "java.lang.IllegalArgumentException"


class InvalidConfigError(ConnectError):
    """Settings are missing or invalid, which was found when they were used."""

    java_class = "org.apache.kafka.common.config.ConfigException"
