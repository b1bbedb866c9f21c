"""Which feature levels belong to a release, and which need each other: asked of nobody."""

from collections.abc import Mapping

from barnabas.cli.work.refused import Refused
from barnabas.metadata.features import (
    METADATA_VERSION,
    SUPPORTED,
    default_levels,
    metadata_level,
    release_name,
    unmet_dependencies,
)

NEWEST = release_name(SUPPORTED[METADATA_VERSION].max)


def levels_of_release(release: str) -> dict[str, int]:
    """metadata.version first, then the others."""
    try:
        return default_levels(metadata_level(release))
    except ValueError as error:
        raise Refused(str(error)) from None


def dependencies_of(feature: str, level: int) -> Mapping[str, int]:
    """The levels of other features without which this one cannot be had."""
    if feature not in SUPPORTED:
        raise Refused(f"Unknown feature: {feature}")
    if not SUPPORTED[feature].min <= level <= SUPPORTED[feature].max:
        raise Refused(f"Feature level {level} is not supported for feature {feature}")
    return unmet_dependencies(feature, level, {})


def level_text(feature: str, level: int) -> str:
    """metadata.version has names for its levels."""
    return f"{level} ({release_name(level)})" if feature == METADATA_VERSION else str(level)
