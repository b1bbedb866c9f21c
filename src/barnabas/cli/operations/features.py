"""Feature levels: of the cluster, of releases, and their dependencies."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.cli.operations.errors import CommandError
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.cluster import FeatureUpdate, UpgradeType
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.metadata.features import (
    METADATA_VERSION,
    SUPPORTED,
    default_levels,
    metadata_level,
    release_name,
    unmet_dependencies,
)


@dataclass(slots=True, frozen=True)
class FeatureLevel:
    name: str
    min_level: int
    """The oldest level that brokers support."""
    max_level: int
    level: int
    """The finalized level; 0 if the feature is disabled."""


@dataclass(slots=True, frozen=True)
class FeatureLevels:
    epoch: int | None
    features: list[FeatureLevel]


async def describe_features(admin: AioAdminClient, node_id: int | None = None) -> FeatureLevels:
    """Returns the features in the order of their names."""
    features = await admin.describe_features(node_id=node_id)
    finalized = features.finalized_features
    return FeatureLevels(
        features.finalized_features_epoch,
        [
            FeatureLevel(
                name,
                supported.min_version,
                supported.max_version,
                finalized[name].max_version if name in finalized else 0,
            )
            for name, supported in sorted(features.supported_features.items())
        ],
    )


async def update_features(
    admin: AioAdminClient, levels: Mapping[str, int], kind: UpgradeType, *, dry_run: bool = False
) -> dict[str, KafkaError | None]:
    """Updates all features or none; returns the error of each."""
    updates = {name: FeatureUpdate(level, kind) for name, level in levels.items()}
    try:
        results = await admin.update_features(updates, validate_only=dry_run)
    except KafkaException as failure:
        return dict.fromkeys(levels, failure.args[0])
    return {name: results.errors.get(name) for name in levels}


def format_level(feature: str, level: int) -> str:
    """Returns the level, as a release name for metadata.version."""
    return release_name(level) if feature == METADATA_VERSION else str(level)


LATEST_RELEASE = release_name(SUPPORTED[METADATA_VERSION].max)


def levels_of_release(release: str) -> dict[str, int]:
    """Returns the levels of a release, metadata.version first."""
    try:
        return default_levels(metadata_level(release))
    except ValueError as error:
        raise CommandError(str(error)) from None


def dependencies_of(feature: str, level: int) -> Mapping[str, int]:
    """Returns the levels of other features that this level needs."""
    if feature not in SUPPORTED:
        raise CommandError(f"Unknown feature: {feature}")
    if not SUPPORTED[feature].min <= level <= SUPPORTED[feature].max:
        raise CommandError(f"Feature level {level} is not supported for feature {feature}")
    return unmet_dependencies(feature, level, {})


def format_level_with_release(feature: str, level: int) -> str:
    """Returns the level, with the release name for metadata.version."""
    return f"{level} ({release_name(level)})" if feature == METADATA_VERSION else str(level)


def parse_levels(features: list[str] | tuple[str, ...]) -> dict[str, int]:
    """Parses `feature=level` options."""
    levels = {}
    for feature in features:
        name, equals, level = feature.partition("=")
        if not equals or not level.isdigit():
            raise CommandError(f"{feature!r} is not NAME=LEVEL")
        levels[name] = int(level)
    return levels
