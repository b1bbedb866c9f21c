"""Features: describe supported and finalized levels, and update the finalized ones."""

from collections.abc import Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results, error_or_none, raise_on_error
from barnabas.client.admin.validation import UNSET
from barnabas.client.errors import KafkaError
from barnabas.net.handshake import API_VERSIONS_REQUEST
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


class UpgradeType(Enum):
    """Whether a level may rise, fall without losing metadata, or fall in any case."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(slots=True, frozen=True)
class FeatureUpdate:
    """The level to finalize for a feature; 0 disables it."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@dataclass(slots=True, frozen=True)
class VersionRange:
    min_version: int
    max_version: int


@dataclass(slots=True, frozen=True)
class FeatureMetadata:
    """Levels by feature: finalized ones with their epoch, and those that brokers support."""

    finalized_features: dict[str, VersionRange]
    finalized_features_epoch: int | None
    supported_features: dict[str, VersionRange]


def describe_features(
    admin: AdminRequests, *, node_id: int | None = None, request_timeout: float = UNSET
) -> Coroutine[Any, Any, FeatureMetadata]:
    """Returns the finalized features of the cluster and those that brokers support.

    `node_id` selects the node to request them from.
    """
    deadline = admin.deadline(request_timeout)

    async def describe() -> FeatureMetadata:
        response = await admin.send(API_VERSIONS_REQUEST, node_id, deadline=deadline)
        raise_on_error(response.error_code)
        epoch = response.finalized_features_epoch
        return FeatureMetadata(
            {
                feature.name: VersionRange(feature.min_version_level, feature.max_version_level)
                for feature in response.finalized_features
            },
            epoch if epoch >= 0 else None,
            {
                feature.name: VersionRange(feature.min_version, feature.max_version)
                for feature in response.supported_features
            },
        )

    return describe()


def update_features(
    admin: AdminRequests,
    feature_updates: dict[str, FeatureUpdate],
    *,
    validate_only: bool = False,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, None]]:
    """Changes the finalized levels of features, all or none; results are by feature."""
    if not feature_updates:
        raise ValueError("feature_updates must hold at least one feature")
    deadline = admin.deadline(request_timeout)
    request = UpdateFeaturesRequest(
        timeout_ms=admin.operation_timeout_ms(operation_timeout, deadline),
        feature_updates=[
            FeatureUpdateKey(
                feature=name,
                max_version_level=update.max_version_level,
                upgrade_type=update.upgrade_type.value,
            )
            for name, update in feature_updates.items()
        ],
        validate_only=validate_only,
    )

    async def update() -> Results[str, None]:
        response = await admin.send_to_controller(request, deadline)
        outcomes: dict[str, KafkaError | None] = dict.fromkeys(feature_updates)
        # Up to version 1 features have errors of their own.
        for result in response.results:
            outcomes[result.feature] = error_or_none(result.error_code, result.error_message)
        return Results(outcomes)

    return update()
