"""Feature levels of the cluster: what they are, raising and lowering them."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.features import FeatureUpdate, UpgradeType
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.metadata.features import METADATA_VERSION, release_name


@dataclass(slots=True, frozen=True)
class Feature:
    name: str
    least: int
    """The oldest level that brokers know."""
    most: int
    level: int
    """The one the cluster is at; 0 is without it."""


@dataclass(slots=True, frozen=True)
class Features:
    epoch: int | None
    features: list[Feature]


async def describe_features(admin: AioAdminClient, node_id: int | None = None) -> Features:
    """In the order of their names."""
    told = await admin.describe_features(node_id=node_id)
    finalized = told.finalized_features
    return Features(
        told.finalized_features_epoch,
        [
            Feature(
                name,
                known.min_version,
                known.max_version,
                finalized[name].max_version if name in finalized else 0,
            )
            for name, known in sorted(told.supported_features.items())
        ],
    )


async def update_features(
    admin: AioAdminClient,
    levels: Mapping[str, int],
    kind: UpgradeType,
    *,
    dry_run: bool = False,
) -> dict[str, KafkaError | None]:
    """What became of each: all are changed, or none."""
    updates = {name: FeatureUpdate(level, kind) for name, level in levels.items()}
    try:
        told = await admin.update_features(updates, validate_only=dry_run)
    except KafkaException as failure:
        return dict.fromkeys(levels, failure.args[0])
    return {name: told.errors.get(name) for name in levels}


def shown_level(feature: str, level: int) -> str:
    """metadata.version is known by the names of its levels."""
    return release_name(level) if feature == METADATA_VERSION else str(level)
