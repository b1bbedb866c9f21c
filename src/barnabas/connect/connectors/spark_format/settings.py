"""The settings that sources and sinks of Spark formats share."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    at_least,
    invalid_value,
    not_empty,
)
from barnabas.connect.connector import path_segment
from barnabas.connect.errors import InvalidConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

    from barnabas.connect.execution.work import WorkerSettings

FORMAT: Final = "format"
SCHEMA: Final = "schema"
KEY_COLUMN: Final = "key.column"
CHECKPOINT_LOCATION: Final = "checkpoint.location"
TRIGGER_INTERVAL_MS: Final = "trigger.interval.ms"
OPTION_PREFIX: Final = "option."

CHECKPOINT_DIR: Final = "barnabas.checkpoint.dir"
"""The setting of a worker below which connectors have their checkpoints."""

_SIMILAR_PREFIXES: Final = ("options.", "opt.", "opts.")

SHARED_SETTINGS: Final = ConfigDef(
    ConnectorSetting(
        FORMAT,
        ConfigType.STRING,
        doc="A format of Spark that can stream, such as `rate` or `parquet`, or a PySpark data "
        "source as module:Class. Its options are the settings that begin with `option.`.",
        importance=Importance.HIGH,
        validator=not_empty,
    ),
    ConnectorSetting(
        CHECKPOINT_LOCATION,
        ConfigType.STRING,
        "",
        "The directory of the positions, which every worker must reach. By default it is "
        f"GROUP/NAME below the worker's {CHECKPOINT_DIR}.",
        Importance.HIGH,
    ),
    ConnectorSetting(
        TRIGGER_INTERVAL_MS,
        ConfigType.LONG,
        1000,
        "The time from the start of a micro-batch to that of the next. 0 starts each as soon as "
        "there is something to do.",
        Importance.MEDIUM,
        at_least(0),
    ),
)

T = TypeVar("T")


def options_of(config: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of the format."""
    return {
        name.removeprefix(OPTION_PREFIX): text
        for name, text in config.items()
        if name.startswith(OPTION_PREFIX)
    }


def data_source(format_name: str) -> type[DataSource] | None:
    """Returns the class of a format that is given as module:Class. Raises ConfigError."""
    from pyspark.sql.datasource import DataSource

    module, colon, name = format_name.partition(":")
    if not colon:
        return None
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the module of a user raises
        raise InvalidConfigError(
            invalid_value(FORMAT, format_name, f"{type(error).__name__}: {error}")
        ) from error
    if not (isinstance(found, type) and issubclass(found, DataSource)):
        complaint = "It is not a subclass of pyspark.sql.datasource.DataSource"
        raise InvalidConfigError(invalid_value(FORMAT, format_name, complaint))
    return found


def registered_format(session: SparkSession, format_name: str) -> str:
    """Returns the name that the session knows the format by. Raises ConfigError."""
    found = data_source(format_name)
    if found is None:
        return format_name
    session.dataSource.register(found)
    return found.name()


def checkpoint_location(settings: Mapping[str, Any], name: str, worker: WorkerSettings) -> str:
    """Raises ConfigError if neither connector nor worker names a directory."""
    given: str = settings[CHECKPOINT_LOCATION]
    if given:
        return given
    directory = worker.originals.get(CHECKPOINT_DIR, "").strip()
    if not directory:
        raise InvalidConfigError(
            f"There is no directory for the checkpoint: set {CHECKPOINT_LOCATION} of the "
            f"connector, or {CHECKPOINT_DIR} of the worker, to one that every worker reaches."
        )
    return f"{directory.rstrip('/')}/{worker.group_id}/{path_segment(name)}"


def check_names(config: Mapping[str, str], values: list[ConfigValueInfo]) -> None:
    """Adds errors for settings whose prefix is nearly that of options."""
    for name in config:
        prefix = next(filter(name.startswith, _SIMILAR_PREFIXES), None)
        if prefix is not None:
            meant = OPTION_PREFIX + name.removeprefix(prefix)
            error = f"{name} is not a setting. Did you mean {meant}?"
            values.append(ConfigValueInfo(name, config[name], errors=[error]))


def value_named(values: list[ConfigValueInfo], name: str) -> ConfigValueInfo:
    return next(value for value in values if value.name == name)
