"""Brokers whose settings allow the classic protocol only."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.brokers import BrokerProcess, PeerBroker, is_peer_installed
from tests.conformance.side_by_side.conftest import PLAIN, create_topic, wait_until_ready
from tests.conformance.side_by_side.consumers import first_heartbeat
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.groups import first_member, leave
from tests.conformance.side_by_side.sides import Side, Sides

from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import DescribeGroupsRequest

pytestmark = pytest.mark.peer

CLASSIC_ONLY = {"group.coordinator.rebalance.protocols": "classic"}


@pytest.fixture(scope="module")
def classic_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    brokers = [
        PeerBroker(tmp_path_factory.mktemp("classic-kafka"), settings=CLASSIC_ONLY),
        BrokerProcess(tmp_path_factory.mktemp("classic-barnabas"), settings=CLASSIC_ONLY),
    ]
    sides: list[Side] = []
    try:
        for name, broker in zip(("Kafka", "Barnabas"), brokers, strict=True):
            broker.start()
            sides.append(Side(name, broker))
            create_topic(sides[-1], PLAIN, 2)
            wait_until_ready(sides[-1])
        yield sides
    finally:
        for side in sides:
            side.close()
        for broker in brokers:
            broker.stop()


def test_the_consumer_protocol_is_refused_and_the_classic_one_served(classic_only: Sides) -> None:
    def script(dialog: Dialog) -> None:
        dialog.send_in_all_versions(first_heartbeat("g", "m"))
        dialog.send_in_all_versions(ConsumerGroupDescribeRequest(group_ids=["g", "h"]))
        member = first_member(dialog, "g")
        dialog.send_in_all_versions(DescribeGroupsRequest(groups=["g"]))
        dialog.send(leave("g", member.member_id))

    assert_same_dialog(classic_only, script)


def test_api_versions_has_the_same_apis_of_groups(classic_only: Sides) -> None:
    kafka, barnabas = (versions(side) for side in classic_only)
    assert kafka == barnabas


def versions(side: Side) -> dict[str, Any]:
    keys = ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE
    return {key.name: side.supported_versions(key) for key in keys}
