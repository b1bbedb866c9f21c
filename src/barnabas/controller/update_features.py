"""UpdateFeatures (key 57): finalizes feature levels, all of a request or none.

v0 has only "allow downgrade"; v1 adds upgrade types and validate-only; v2 has no results for
single features.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum

from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.decision import Decision
from barnabas.metadata import features
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import FeatureLevelRange
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import ConfigRecord, FeatureLevelRecord
from barnabas.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.wire.schema import Message

_BROKER = 4
_MIN_ISR = "min.insync.replicas"
_UNSAFE_DOWNGRADE = "Unsafe metadata downgrade is not supported in this version."
_LOSSY_DOWNGRADE = (
    "Refusing to perform the requested downgrade because it might delete metadata information."
)
_DISABLED = FeatureLevelRange(0, 0)


class FeatureUpgradeType(IntEnum):
    """The kinds of updates in a request."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def decide(
    request: UpdateFeaturesRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    updates = {update.feature: update for update in request.feature_updates}
    proposed = dict(image.features)
    proposed.update((name, update.max_version_level) for name, update in updates.items())
    records: list[Message] = []
    for update in updates.values():
        try:
            records += _update(update, proposed, image, context)
        except KafkaError as error:
            raise KafkaError(
                error.code,
                "The update failed for all features since the following feature had an error: "
                f"{error.message}",
            ) from None
    response = UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in request.feature_updates
        ],
    )
    return Decision([] if request.validate_only else records, response)


def _update(
    update: FeatureUpdateKey,
    proposed: Mapping[str, int],
    image: MetadataImage,
    context: ControllerContext,
) -> list[Message]:
    name, level = update.feature, update.max_version_level
    upgrade_type = _upgrade_type(update)
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    _require_supported(update, image, context)
    is_kraft = name == features.KRAFT_VERSION
    current = context.kraft_version if is_kraft else image.features.get(name, 0)
    if level < current and upgrade_type is FeatureUpgradeType.UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > current and upgrade_type is not FeatureUpgradeType.UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if is_kraft:
        if level != current:
            raise _invalid(update, "kraft.version is set when the quorum is formatted.")
        return []
    if name == features.METADATA_VERSION and features.is_lossy_downgrade(current, level):
        is_unsafe = upgrade_type is FeatureUpgradeType.UNSAFE_DOWNGRADE
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. "
            + (_UNSAFE_DOWNGRADE if is_unsafe else _LOSSY_DOWNGRADE),
        )
    for needed, least in features.unmet_dependencies(name, level, proposed).items():
        raise _invalid(update, f"It needs {needed} at {least} or later.")
    records: list[Message] = [FeatureLevelRecord(name=name, feature_level=level)]
    if name == features.ELIGIBLE_LEADER_REPLICAS_VERSION and level > current:
        records += min_isr_records(image, context)
    return records


def min_isr_records(image: MetadataImage, context: ControllerContext) -> Iterator[Message]:
    """Yields the records for one cluster-wide minimum ISR, which eligible leader replicas need."""
    if _MIN_ISR not in image.config(_BROKER, ""):
        value = str(context.resolver.static[_MIN_ISR])
        yield ConfigRecord(resource_type=_BROKER, resource_name="", name=_MIN_ISR, value=value)
    for (resource_type, name), configs in image.configs.items():
        if resource_type == _BROKER and name and _MIN_ISR in configs:
            yield ConfigRecord(resource_type=_BROKER, resource_name=name, name=_MIN_ISR, value=None)


def _upgrade_type(update: FeatureUpdateKey) -> FeatureUpgradeType:
    if update.allow_downgrade:
        return FeatureUpgradeType.SAFE_DOWNGRADE
    try:
        return FeatureUpgradeType(update.upgrade_type)
    except ValueError:
        raise _invalid(update, "The controller does not support the given upgrade type.") from None


def _require_supported(
    update: FeatureUpdateKey, image: MetadataImage, context: ControllerContext
) -> None:
    """Raises KafkaError unless all nodes support the level; a node without the feature has 0."""
    own = features.SUPPORTED.get(update.feature)
    if own is None:
        raise _invalid(
            update, f"Local controller {context.controller_id} does not support this feature."
        )
    nodes = [(f"Local controller {context.controller_id}", own)]
    nodes += [
        (f"Broker {broker.broker_id}", broker.features.get(update.feature, _DISABLED))
        for broker in image.brokers.values()
    ]
    nodes += [
        (
            f"Controller {controller.controller_id}",
            controller.features.get(update.feature, _DISABLED),
        )
        for controller in image.controllers.values()
        if controller.controller_id != context.controller_id
    ]
    for node, levels in nodes:
        if update.max_version_level in levels:
            continue
        if levels.max == 0:
            raise _invalid(update, f"{node} does not support this feature.")
        raise _invalid(update, f"{node} only supports versions {levels.min}-{levels.max}")
    if image.metadata_level < features.CONTROLLER_REGISTRATION_FROM:
        return
    for voter_id in context.voter_ids:
        if voter_id != context.controller_id and voter_id not in image.controllers:
            raise _invalid(
                update,
                f"controller {voter_id} has not registered, and may not support this feature",
            )


def _invalid(update: FeatureUpdateKey, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {reason}",
    )
