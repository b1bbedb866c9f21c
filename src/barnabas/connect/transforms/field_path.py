"""Paths of fields: `field.syntax.version`."""

from __future__ import annotations

from typing import Final

from barnabas.connect.config_def import ConfigType, ConnectorSetting, Importance, one_of
from barnabas.connect.errors import InvalidConfigError

FIELD_SYNTAX_VERSION: Final = ConnectorSetting(
    "field.syntax.version",
    ConfigType.STRING,
    "V1",
    "How fields are named. V1: the name of a field of the key or value itself. V2: a path of names "
    "with dots between them; a name that has dots is between backticks, as in `a.b`.c.",
    Importance.HIGH,
    one_of("V1", "V2", ignore_case=True),
)


def steps_of(path: str, version: str) -> list[str]:
    """Returns the names of the fields from the outermost. Raises ConfigError."""
    if version.upper() == "V1":
        return [path]
    if not path:
        raise InvalidConfigError("The path of a field must not be empty.")
    steps = []
    position = 0
    while position < len(path):
        if path[position] == "`":
            step, position = _quoted_step(path, position)
        else:
            end = path.find(".", position)
            end = len(path) if end < 0 else end
            step, position = path[position:end], end + 1
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return steps


def _quoted_step(path: str, opening: int) -> tuple[str, int]:
    """Returns the name between backticks, and where the next begins.

    A backtick ends the name if a dot or the end follows and no backslash precedes it.
    """
    name = ""
    start = position = opening + 1
    while True:
        position = path.find("`", position)
        is_escaped = position > 0 and path[position - 1] == "\\"
        is_last = position == len(path) - 1
        if position < 0 or (is_last and is_escaped):
            raise InvalidConfigError(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before "
                f"backtick at position {opening} to escape it"
            )
        if is_last:
            return name + path[start:position], position + 1
        if path[position + 1] != ".":
            position += 1
        elif is_escaped:
            name += path[start : position - 1] + "`"
            position += 1
            start = position
        else:
            return name + path[start:position], position + 2
