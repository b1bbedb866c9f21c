"""Levels of loggers as Connect shows and sets them: Python's loggers, with log4j's levels.

A name of Java's packages stands for ours: `org.apache.kafka.connect` is `barnabas.connect`.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final

ROOT: Final = "root"

_LEVELS: Final = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": 1 << 31,
}
_JAVA_PACKAGES: Final = {
    "org.apache.kafka.connect": "barnabas.connect",
    "org.apache.kafka.clients": "barnabas.client",
    "org.apache.kafka": "barnabas",
}

_last_modified_ms: dict[str, int] = {}


@dataclass(slots=True, frozen=True)
class LoggerLevel:
    level: str
    last_modified_ms: int | None
    """None if it was not changed since the start."""


def is_level(text: str) -> bool:
    return text.upper() in _LEVELS


def logger_levels() -> dict[str, LoggerLevel]:
    """Returns the effective levels of all loggers of this process."""
    return {name: _level(name, logger) for name, logger in sorted(_loggers().items())}


def logger_level(name: str) -> LoggerLevel | None:
    """Returns the effective level; None if there is no such logger."""
    name = _own_name(name)
    logger = _loggers().get(name)
    return None if logger is None else _level(name, logger)


def set_logger_level(name: str, level: str) -> list[str]:
    """Sets the level of a logger and of those below it, until the process ends.

    Returns the loggers that had another level, sorted. Ignores a level that does not exist.
    """
    number = _LEVELS.get(level.upper())
    if number is None:
        return []
    name = _own_name(name)
    if name != ROOT:
        logging.getLogger(name)
    below = {
        each: logger
        for each, logger in _loggers().items()
        if name in (ROOT, each) or each.startswith(f"{name}.")
    }
    changed = sorted(each for each, logger in below.items() if logger.getEffectiveLevel() != number)
    now_ms = time.time_ns() // 1_000_000
    for logger in below.values():
        logger.setLevel(number)
    _last_modified_ms.update(dict.fromkeys(changed, now_ms))
    return changed


def _loggers() -> dict[str, logging.Logger]:
    loggers: dict[str, logging.Logger] = {ROOT: logging.root}
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            loggers[name] = logger
    return loggers


def _level(name: str, logger: logging.Logger) -> LoggerLevel:
    number = logger.getEffectiveLevel()
    at_or_below = [level for level, each in _LEVELS.items() if each <= number]
    return LoggerLevel(at_or_below[-1] if at_or_below else "ALL", _last_modified_ms.get(name))


def _own_name(name: str) -> str:
    for package, own in _JAVA_PACKAGES.items():
        if name == package or name.startswith(f"{package}."):
            return own + name.removeprefix(package)
    return name
