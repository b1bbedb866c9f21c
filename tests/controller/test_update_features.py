"""UpdateFeatures: all levels of a request, or none."""

from typing import Any

import pytest
from tests.controller.conftest import World, broker, error_response_to

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import (
    ConfigRecord,
    ControllerFeature,
    FeatureLevelRecord,
    RegisterControllerRecord,
)
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE, UNSAFE = 1, 2, 3
ELR = "eligible.leader.replicas.version"


def request(*updates: tuple[str, int, int], **options: Any) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        **options,
    )


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        ("metadata.version", 30, UPGRADE),
        ("group.version", 0, SAFE),
        ("group.version", 0, UNSAFE),
        ("group.version", 1, SAFE),
        ("transaction.version", 1, SAFE),
        (ELR, 0, SAFE),
    ],
)
def test_a_supported_feature_level_is_finalized(
    name: str, level: int, kind: int, one_broker: World
) -> None:
    decision = one_broker.decide(request((name, level, kind)))
    assert decision.records == [FeatureLevelRecord(name=name, feature_level=level)]
    assert one_broker.image.features.get(name, 0) == level


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        ("metadata.version", 31, UPGRADE),
        ("metadata.version", 29, UPGRADE),
        ("metadata.version", 29, SAFE),  # would lose cordoned directories
        ("metadata.version", 29, UNSAFE),
        ("metadata.version", 6, UNSAFE),
        ("metadata.version", -1, UPGRADE),
        ("metadata.version", 30, 0),
        ("metadata.version", 30, 9),
        ("nope", 1, UPGRADE),
        ("nope", 0, SAFE),
        ("group.version", 0, UPGRADE),
        ("group.version", 2, UPGRADE),
        ("kraft.version", 0, SAFE),
        ("kraft.version", 2, UPGRADE),
    ],
)
def test_an_invalid_feature_level_is_rejected(
    name: str, level: int, kind: int, one_broker: World
) -> None:
    update = request(("group.version", 0, SAFE), (name, level, kind))
    with pytest.raises(KafkaError) as error:
        one_broker.decide(update)
    assert error.value.code is ErrorCode.INVALID_UPDATE_VERSION
    response = error_response_to(update, error.value)
    assert (response.error_code, response.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
    assert name in str(response.error_message)


def test_every_node_must_support_a_feature_level() -> None:
    world = World(broker(1), broker(2, features={}))
    with pytest.raises(KafkaError, match="Broker 2"):
        world.decide(request(("group.version", 1, UPGRADE)))


def test_a_node_without_a_feature_supports_level_0() -> None:
    world = World(broker(1), broker(2, features={}))
    assert world.decide(request(("group.version", 0, SAFE))).records


def test_every_controller_must_be_registered_and_support_a_feature_level(one_broker: World) -> None:
    one_broker.voter_ids = [1, 2]
    update = request(("group.version", 1, UPGRADE))
    with pytest.raises(KafkaError, match="controller 2 has not registered"):
        one_broker.decide(update)
    one_broker.apply(RegisterControllerRecord(controller_id=2))
    with pytest.raises(KafkaError, match="Controller 2 does not support"):
        one_broker.decide(update)
    levels = [ControllerFeature(name="group.version", max_supported_version=1)]
    one_broker.apply(RegisterControllerRecord(controller_id=2, features=levels))
    assert one_broker.decide(update).records


def test_kraft_version_cannot_be_changed(one_broker: World) -> None:
    assert one_broker.decide(request(("kraft.version", 1, UPGRADE))).records == []


def test_version_0_has_only_allow_downgrade(one_broker: World) -> None:
    update = FeatureUpdateKey(feature="group.version", max_version_level=0, allow_downgrade=True)
    update = UpdateFeaturesRequest(feature_updates=[update])
    assert len(one_broker.decide(update).records) == 1


def test_validate_only_changes_nothing(one_broker: World) -> None:
    update = request(("group.version", 0, SAFE), validate_only=True)
    assert one_broker.decide(update).records == []


def test_eligible_leaders_need_a_cluster_wide_min_insync_replicas(one_broker: World) -> None:
    one_broker.decide(request((ELR, 0, SAFE)))
    one_broker.apply(
        ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="2")
    )
    one_broker.decide(request((ELR, 1, UPGRADE)))
    assert one_broker.image.config(4, "") == {"min.insync.replicas": "1"}
    assert one_broker.image.config(4, "1") == {}
