"""Compares responses of two workers, but for what has to differ.

Deliberate differences:

- A body that cannot be read is an error 500 in both, and the messages name no Java classes here.
- A setting whose value cannot be parsed has one error here. Connect also validates `null` then,
  and reports what it thinks of that.
- A setting of the connector's own class may not be null here. Connect accepts it, and the connector
  fails when it starts.
- A setting of a transform is named with its prefix in every error. Connect leaves it out in some.
- Sources have the settings of the dead letter queue too, and all connectors those of `Execution`.
- The settings of a converter come in the order of their definition. Connect's order is random.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_OWN_SETTINGS = re.compile(r"barnabas\.")
_OF_DEAD_LETTERS = re.compile(r"errors\.deadletterqueue\.")
_NULL_ERROR = re.compile(r"Invalid value null for configuration ")
_OF_CONVERTER = re.compile(r"(key|value|header)\.converter\.(?!plugin\.version)")
_CONVERTER_GROUPS = ("Schemas", "Serialization")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def comparable_error(status: int, content: Any) -> Any:
    """Returns an error without a message of Java's, and without errors about `null`."""
    if status == 500:
        return status, None
    if status == 400:
        lines = content["message"].splitlines()
        kept = [line for line in lines if not _NULL_ERROR.match(line)]
        if len(kept) < len(lines):
            kept[0] = kept[0].replace(str(len(lines) - 2), str(len(kept) - 2))
        return status, {**content, "message": kept}
    return status, content


def comparable_validation(content: Mapping[str, Any], *, is_source: bool) -> dict[str, Any]:
    """Returns the parts of a validation."""
    settings = {
        each["value"]["name"]: each
        for each in content["configs"]
        if not is_own_setting(each["value"]["name"], is_source=is_source)
    }
    errors = {
        name: [error for error in each["value"]["errors"] if not _NULL_ERROR.match(error)]
        for name, each in settings.items()
    }
    return {
        "name": content["name"],
        "groups": sorted(group for group in content["groups"] if group != "Execution"),
        "order": [name for name in settings if not _OF_CONVERTER.match(name)],
        "errors": {name: messages for name, messages in errors.items() if messages},
        "values": {
            name: without_versions(each["value"]["value"]) for name, each in settings.items()
        },
        "definitions": {
            name: comparable_definition(each["definition"]) for name, each in settings.items()
        },
    }


def is_own_setting(name: str, *, is_source: bool) -> bool:
    """Returns whether only one of the two has the setting."""
    is_own = _OWN_SETTINGS.match(name) is not None or name.endswith("converter.type")
    return is_own or (is_source and _OF_DEAD_LETTERS.match(name) is not None)


def comparable_definition(definition: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns a definition without the text, which is our own."""
    if definition is None:
        return None
    left_out = {"documentation"}
    if _OF_CONVERTER.match(definition["name"]) or definition["group"] in _CONVERTER_GROUPS:
        left_out.add("order_in_group")
    return {
        name: without_versions(value) for name, value in definition.items() if name not in left_out
    }


def without_versions(value: Any) -> Any:
    return _VERSION.sub("V", value) if isinstance(value, str) else value
