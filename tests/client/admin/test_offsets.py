"""Offsets of partitions, deleting records before them, and electing leaders."""

import pytest
from tests.client.admin.clients import open_transaction, produce

from barnabas import OFFSET_END, ElectionType, IsolationLevel, TopicPartition
from barnabas.admin import AdminClient, KafkaError, OffsetSpec
from barnabas.testing import Broker


def test_offsets_are_listed_by_name_and_by_timestamp(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    produce(broker.bootstrap_servers, topic, 5)
    first = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return admin.list_offsets({first: spec})[first].result(30).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 5
    assert 0 <= offset(OffsetSpec.max_timestamp()) < 5
    assert offset(OffsetSpec.for_timestamp(0)) == 0
    assert offset(OffsetSpec.for_timestamp(2**60)) == -1
    empty = TopicPartition(topic, 1)
    nowhere = admin.list_offsets({empty: OffsetSpec.max_timestamp()})[empty].result(30)
    assert (nowhere.offset, nowhere.timestamp, nowhere.leader_epoch) == (-1, -1, None)


def test_the_end_with_read_committed_is_the_last_stable_offset(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    with open_transaction(broker.bootstrap_servers, topic, topic) as producer:
        partitions = {TopicPartition(topic, 0): OffsetSpec.latest()}
        level = IsolationLevel.READ_COMMITTED
        committed = admin.list_offsets(partitions, isolation_level=level)
        assert committed[TopicPartition(topic, 0)].result(30).offset == 0
        assert admin.list_offsets(partitions)[TopicPartition(topic, 0)].result(30).offset == 1
        producer.abort_transaction(30)


def test_a_missing_partition_fails_alone_and_at_once(admin: AdminClient, topic: str) -> None:
    there, beyond, nowhere = (
        TopicPartition(topic, 0),
        TopicPartition(topic, 77),
        TopicPartition("nobody", 0),
    )
    answers = admin.list_offsets(dict.fromkeys((there, beyond, nowhere), OffsetSpec.latest()))
    assert answers[there].result(30).offset == 0
    assert answers[beyond].exception(30).args[0] == KafkaError._UNKNOWN_PARTITION
    assert answers[nowhere].exception(30).args[0] == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_records_before_an_offset_are_deleted(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    produce(broker.bootstrap_servers, topic, 5)
    some = TopicPartition(topic, 0, 3)
    assert admin.delete_records([some])[some].result(30).low_watermark == 3
    everything = TopicPartition(topic, 0, OFFSET_END)
    assert admin.delete_records([everything])[everything].result(30).low_watermark == 5
    beyond = TopicPartition(topic, 1, 9)
    error = admin.delete_records([beyond])[beyond].exception(30).args[0]
    assert error == KafkaError.OFFSET_OUT_OF_RANGE


def test_a_preferred_leader_needs_no_election(admin: AdminClient, topic: str) -> None:
    partitions = [TopicPartition(topic, 0), TopicPartition("nobody", 0)]
    errors = admin.elect_leaders(ElectionType.PREFERRED, partitions).result(30)
    assert errors == {
        partitions[0]: KafkaError.ELECTION_NOT_NEEDED,
        partitions[1]: KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    assert admin.elect_leaders(ElectionType.PREFERRED).result(30) == {}


@pytest.mark.parametrize(
    ("partitions", "error"),
    [
        ([TopicPartition("t", 0)], TypeError),
        ({"t": OffsetSpec.latest()}, TypeError),
        ({TopicPartition("t", 0): -1}, TypeError),
        ({TopicPartition("", 0): OffsetSpec.latest()}, ValueError),
        ({TopicPartition("t"): OffsetSpec.latest()}, ValueError),
    ],
)
def test_invalid_arguments_are_rejected_at_once(
    admin: AdminClient, partitions: dict[TopicPartition, OffsetSpec], error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.list_offsets(partitions)


def test_an_offset_spec_is_a_named_offset_or_a_timestamp() -> None:
    assert OffsetSpec(-1) == OffsetSpec.latest()
    assert OffsetSpec(12) == OffsetSpec.for_timestamp(12)
    with pytest.raises(ValueError, match="-7 is neither a timestamp"):
        OffsetSpec(-7)
