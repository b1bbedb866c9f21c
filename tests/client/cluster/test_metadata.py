"""How a Metadata response updates the metadata of a client."""

from collections.abc import Sequence

from tests.client.scripted import a_partition

from barnabas.client.cluster import MetadataSnapshot
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID, OTHER_ID = b"i" * 16, b"o" * 16


def response(
    *partitions: MetadataResponsePartition,
    name: str = "orders",
    topic_id: bytes = ID,
    error: int = 0,
) -> MetadataResponse:
    topic = MetadataResponseTopic(
        name=name, topic_id=topic_id, error_code=error, partitions=list(partitions)
    )
    broker = MetadataResponseBroker(node_id=1, host="h", port=1, rack="r")
    return MetadataResponse(brokers=[broker], topics=[topic], cluster_id="c", controller_id=1)


def after(
    *responses: MetadataResponse, topic_names: Sequence[str] = ("orders",)
) -> MetadataSnapshot:
    metadata = MetadataSnapshot()
    for one in responses:
        metadata = metadata.updated(one, topic_names)
    return metadata


def test_a_response_sets_brokers_topics_and_ids() -> None:
    metadata = after(response(a_partition(1, 2), a_partition(0, 1)))
    assert metadata.cluster_id == "c"
    assert metadata.brokers[1].rack == "r"
    assert metadata.topic_names == {ID: "orders"}
    assert [each.index for each in metadata.topics["orders"].partitions] == [0, 1]


def test_the_leader_of_an_unknown_partition_is_none() -> None:
    metadata = after(response(a_partition(0, 7, epoch=3)))
    leader = metadata.leader("orders", 0)
    assert leader is not None
    assert (leader.leader, leader.leader_epoch) == (7, 3)
    assert metadata.leader("orders", 1) is None
    assert metadata.leader("orders", -1) is None
    assert metadata.leader("nothing", 0) is None


def test_an_older_leader_epoch_does_not_replace_a_newer_one() -> None:
    metadata = after(response(a_partition(0, 2, epoch=5)), response(a_partition(0, 1, epoch=4)))
    assert metadata.topics["orders"].partitions[0].leader == 2


def test_the_same_leader_epoch_updates_the_isr() -> None:
    newer = a_partition(0, 2, epoch=5)
    newer.isr_nodes = [2, 3]
    metadata = after(response(a_partition(0, 2, epoch=5)), response(newer))
    assert metadata.topics["orders"].partitions[0].isr == (2, 3)


def test_a_recreated_topic_starts_with_its_own_epochs() -> None:
    metadata = after(
        response(a_partition(0, 2, epoch=5)),
        response(a_partition(0, 1, epoch=0), topic_id=OTHER_ID),
    )
    assert metadata.topics["orders"].partitions[0].leader == 1
    assert metadata.topic_names == {OTHER_ID: "orders"}


def test_a_topic_that_was_deleted_has_an_error_and_no_id() -> None:
    gone = response(topic_id=bytes(16), error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    metadata = after(response(a_partition(0, 2)), gone)
    assert metadata.topics["orders"].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not metadata.topics["orders"].is_settled
    assert metadata.topic_names == {}


def test_topics_that_are_not_used_are_removed() -> None:
    before = after(response(a_partition(0, 2)))
    metadata = before.updated(response(a_partition(0, 2), name="other"), ["other"])
    assert set(metadata.topics) == {"other"}


def test_a_topic_that_a_response_lacks_stays() -> None:
    before = after(response(a_partition(0, 2)))
    metadata = before.updated(response(a_partition(0, 2), name="other"), ["orders", "other"])
    assert set(metadata.topics) == {"orders", "other"}


def test_a_topic_that_a_complete_response_lacks_does_not_exist() -> None:
    metadata = MetadataSnapshot().updated(
        response(a_partition(0, 2)), ["missing"], is_complete=True
    )
    assert metadata.topics["missing"].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not metadata.topics["orders"].error


def test_a_partition_without_a_leader_is_not_settled() -> None:
    assert not after(response(a_partition(0, -1))).topics["orders"].is_settled
    assert after(response(a_partition(0, 1))).topics["orders"].is_settled
