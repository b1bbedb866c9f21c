"""The broker's loggers as a config resource: Python's loggers with Kafka's level names."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from barnabas.config.errors import InvalidConfig, InvalidConfigRequest

ROOT = "root"

_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def logger_levels() -> dict[str, str]:
    """Returns the effective level of every logger of this process."""
    levels = {ROOT: _level_name(logging.root.level)}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            levels[name] = _level_name(logger.getEffectiveLevel())
    return levels


def validate_logger_levels(changes: Mapping[str, str | None]) -> None:
    """Raises InvalidConfig for an unknown logger or level; None removes a logger's own level."""
    existing = logger_levels()
    for name, level in changes.items():
        if level is None:
            if name == ROOT:
                raise InvalidConfigRequest(
                    "Removing the log level of the root logger is not allowed"
                )
        elif level not in _LEVELS:
            raise InvalidConfig(
                f"Cannot set the log level of {name} to {level} as it is not a supported log "
                f"level. Valid log levels are {', '.join(sorted(_LEVELS))}"
            )
        if name not in existing:
            raise InvalidConfig(f"Logger {name} does not exist!")


def set_logger_levels(changes: Mapping[str, str | None]) -> None:
    """Sets validated levels until the process ends."""
    for name, level in changes.items():
        logger = logging.root if name == ROOT else logging.getLogger(name)
        logger.setLevel(logging.NOTSET if level is None else _LEVELS[level])


def _level_name(level: int) -> str:
    """Returns the highest of Kafka's levels that logs everything that `level` logs."""
    at_or_below = [name for name, number in _LEVELS.items() if number <= level]
    return at_or_below[-1] if at_or_below else "TRACE"
