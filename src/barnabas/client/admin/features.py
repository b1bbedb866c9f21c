"""Features: which levels brokers know, which one the cluster is at, raising and lowering it."""

from collections.abc import Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, Results, outcome_of, raise_failure
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.net.greeting import ASK_VERSIONS
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


class UpgradeType(Enum):
    """Whether a level may only rise, or fall where nothing is lost, or fall in any case."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(slots=True, frozen=True)
class FeatureUpdate:
    """The level that a feature shall have; 0 is without it."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@dataclass(slots=True, frozen=True)
class VersionRange:
    min_version: int
    max_version: int


@dataclass(slots=True, frozen=True)
class FeatureMetadata:
    """Levels by names: those the cluster is at, since which epoch, and those brokers know."""

    finalized_features: dict[str, VersionRange]
    finalized_features_epoch: int | None
    supported_features: dict[str, VersionRange]


class FeatureCalls(Calls):
    def describe_features(
        self, *, node_id: int | None = None, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, FeatureMetadata]:
        """The features as one node knows them, or any."""
        return self._describe_features(node_id, self._deadline(request_timeout))

    async def _describe_features(self, node_id: int | None, deadline: Deadline) -> FeatureMetadata:
        told = await self._routes.ask(ASK_VERSIONS, node_id, deadline=deadline)
        raise_failure(told.error_code)
        epoch = told.finalized_features_epoch
        return FeatureMetadata(
            {
                each.name: VersionRange(each.min_version_level, each.max_version_level)
                for each in told.finalized_features
            },
            epoch if epoch >= 0 else None,
            {
                each.name: VersionRange(each.min_version, each.max_version)
                for each in told.supported_features
            },
        )

    def update_features(
        self,
        feature_updates: dict[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[str, None]]:
        """Change the levels of features, all of them or none."""
        if not feature_updates:
            raise ValueError("feature_updates must hold at least one feature")
        deadline = self._deadline(request_timeout)
        request = UpdateFeaturesRequest(
            timeout_ms=self._wait_ms(operation_timeout, deadline),
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
        return self._update_features(request, deadline)

    async def _update_features(
        self, request: UpdateFeaturesRequest, deadline: Deadline
    ) -> Results[str, None]:
        response = await self._routes.ask_controller(request, deadline)
        outcomes: dict[str, KafkaError | None] = {
            update.feature: None for update in request.feature_updates
        }
        # Up to version 1 features have errors of their own.
        for each in response.results:
            outcomes[each.feature] = outcome_of(each.error_code, each.error_message)
        return Results(outcomes)
