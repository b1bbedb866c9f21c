"""Warnings about explicit settings that are accepted and have no effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.config import broker
from barnabas.config.changes import ConfigResourceType
from barnabas.config.gaps import gap_warnings


def setting_warnings(resource_type: int, explicit: Mapping[str, str]) -> list[str]:
    """Returns a line for each unknown setting, and for each gap that settings belong to."""
    warnings = gap_warnings(resource_type, explicit)
    if resource_type == ConfigResourceType.BROKER:
        return unknown_name_warnings(explicit) + warnings
    return warnings  # other resources reject unknown names


def unknown_name_warnings(names: Iterable[str]) -> list[str]:
    """Returns a line for each setting that brokers do not have, with what to do instead."""
    unknown = [
        name for name in names if broker.find(name) is None and not broker.is_plugin_setting(name)
    ]
    if not unknown:
        return []
    # Imported here because a correct file never needs it.
    from barnabas.config.unknown_names import suggestion

    return [
        f"{name} is not a known setting and has no effect{suggestion(name, broker.SETTINGS)}"
        if name
        else "a line that begins with = has no name and no effect: write name=value"
        for name in unknown
    ]
