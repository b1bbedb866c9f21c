"""The codec reads what it has written, and keeps unknown tagged fields."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.declared_messages import MESSAGES
from tests.wire.message_samples import messages_of_version

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.group_records import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from barnabas.wire.messages.leaders import LeaderIdAndEpoch
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.raft_records import KRaftVersionRecord
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
@given(st.data())
@settings(max_examples=3, deadline=None)
def test_every_version_of_a_message_reads_what_it_wrote(
    message: type[Message], data: st.DataObject
) -> None:
    for version in message.VERSIONS:
        written = data.draw(messages_of_version(message, version))
        encoded = written.write(version)
        assert message.read(b"\x01" + encoded + b"\x02", version, 1) == (written, 1 + len(encoded))
        assert message.read_exactly(bytearray(encoded), version) == written


def test_a_version_without_tagged_fields_has_the_layout_of_the_protocol() -> None:
    request = produce_request(records=b"batch")
    assert (
        request.write(3)
        == (
            b"\xff\xff"  # no transactional id
            b"\xff\xff" + b"\x00\x00\x75\x30"  # acks, timeout
            b"\x00\x00\x00\x01" + b"\x00\x05topic"
            b"\x00\x00\x00\x01" + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x05batch"
        )
    )


def test_a_flexible_version_has_the_layout_of_the_protocol() -> None:
    request = produce_request(records=b"batch")
    assert (
        request.write(9)
        == (
            b"\x00"  # no transactional id
            b"\xff\xff" + b"\x00\x00\x75\x30"  # acks, timeout
            b"\x02" + b"\x06topic"
            b"\x02" + b"\x00\x00\x00\x02" + b"\x06batch" + b"\x00"
            b"\x00" + b"\x00"  # no tagged fields of the topic and the request
        )
    )


def test_records_are_a_view_of_the_frame() -> None:
    frame = bytearray(produce_request(records=b"batch").write(9))
    request = ProduceRequest.read_exactly(frame, 9)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


@dataclass(slots=True, frozen=True)
class FileRegion:
    size_bytes: int


def test_a_region_has_the_position_of_its_bytes() -> None:
    """The bytes with each region at its position are the same as with copied regions."""
    first, second = FileRegion(5), FileRegion(300)
    out = Outgoing(b"head")
    FetchResponse.writer(17)(fetch_response(first, None, second), out)
    contents = {first: b"a" * 5, second: b"b" * 300}
    sent, copied_to = bytearray(), 0
    for position, region in out.regions:
        assert isinstance(region, FileRegion)
        sent += out[copied_to:position] + contents[region]
        copied_to = position
    sent += out[copied_to:]
    copied = fetch_response(contents[first], None, contents[second]).write(17)
    assert sent == b"head" + copied
    assert out.size_bytes == len(sent)


def test_a_region_cannot_be_written_to_plain_bytes() -> None:
    with pytest.raises(TypeError, match="regions"):
        fetch_response(FileRegion(5)).write(17)


def test_unknown_tags_are_written_again_in_order() -> None:
    partition = PartitionData(
        diverging_epoch=EpochEndOffset(epoch=3, end_offset=7),
        snapshot_id=PartitionData().snapshot_id,
        current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=4),
    )
    partition.unknown_tags = {900: b"later", 5: b"sooner"}
    written = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    written.unknown_tags = {3: b"top"}
    encoded = written.write(17)
    read = FetchResponse.read_exactly(encoded, 17)
    assert read == written
    assert read.write(17) == encoded
    assert read.responses[0].partitions[0].unknown_tags == {5: b"sooner", 900: b"later"}
    tags = encoded[encoded.index(b"\x04\x00\x0d") :]
    assert tags.index(b"sooner") < tags.index(b"later")


def test_a_tagged_field_at_its_default_is_not_sent() -> None:
    explicit = PartitionData(diverging_epoch=EpochEndOffset(epoch=-1, end_offset=-1))
    assert fetch_response_of(explicit).write(17) == fetch_response_of(PartitionData()).write(17)


def test_a_null_struct_is_one_byte() -> None:
    without = ConsumerGroupHeartbeatResponse(assignment=None).write(0)
    empty = ConsumerGroupHeartbeatResponse(assignment=Assignment()).write(0)
    assert without[-2:] == b"\xff\x00"
    assert empty[-4:] == b"\x01\x01\x00\x00"
    filled = Assignment(topic_partitions=[TopicPartitions(partitions=[1, 2])])
    response = ConsumerGroupHeartbeatResponse(assignment=filled)
    assert ConsumerGroupHeartbeatResponse.read_exactly(response.write(0), 0) == response


def test_a_null_struct_in_a_tagged_field_is_zero() -> None:
    """Outside of a tagged field it is -1."""
    without = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert without.write(0)[-4:] == b"\x01\x00\x01\x00"
    assert ConsumerGroupMemberMetadataValue.read_exactly(without.write(0), 0) == without
    member = ClassicMemberMetadata(session_timeout_ms=5)
    classic = ConsumerGroupMemberMetadataValue(classic_member_metadata=member)
    assert classic.write(0)[-10:] == b"\x01\x00\x07\x01\x00\x00\x00\x05\x01\x00"
    assert ConsumerGroupMemberMetadataValue.read_exactly(classic.write(0), 0) == classic


@pytest.mark.parametrize("version", [0, 1, 9])
def test_text_above_the_maximum_length_is_not_written(version: int) -> None:
    longest = MetadataRequest(topics=[MetadataRequestTopic(name="a" * 32_767)])
    assert MetadataRequest.read_exactly(longest.write(version), version) == longest
    with pytest.raises(ValueError, match="MetadataRequest version"):
        MetadataRequest(topics=[MetadataRequestTopic(name="a" * 32_768)]).write(version)


def test_an_ignorable_field_is_dropped_by_a_version_without_it() -> None:
    encoded = FetchRequest(rack_id="r1", max_bytes=5).write(10)
    assert FetchRequest.read_exactly(encoded, 10) == FetchRequest(max_bytes=5)


def test_a_field_that_is_not_ignorable_raises_an_error() -> None:
    with pytest.raises(KafkaError, match=r"coordinator_keys") as raised:
        FindCoordinatorRequest(coordinator_keys=["group"]).write(3)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_null_raises_an_error_in_a_version_without_null() -> None:
    assert MetadataRequest(topics=None).write(1) == b"\xff\xff\xff\xff"
    with pytest.raises(KafkaError, match=r"topics") as raised:
        MetadataRequest(topics=None).write(0)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", [-1, 2, 14])
def test_an_unknown_version_is_not_read_or_written(version: int) -> None:
    for use in (ProduceRequest.reader, ProduceRequest.writer):
        with pytest.raises(KafkaError, match="3-13") as raised:
            use(version)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_error_of_a_number_out_of_range_has_the_message_name() -> None:
    with pytest.raises(ValueError, match="KRaftVersionRecord version 0"):
        KRaftVersionRecord(version=2**15).write(0)


def test_shared_defaults_cannot_be_changed() -> None:
    partition = PartitionData()
    with pytest.raises(AttributeError, match="assign a new one"):
        partition.current_leader.leader_id = 4
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    assert isinstance(partition.current_leader, LeaderIdAndEpoch)


def test_lists_are_not_shared() -> None:
    one, other = ProduceRequest(), ProduceRequest()
    one.topic_data.append(TopicProduceData())
    assert other.topic_data == []


def test_messages_compare_by_value_and_show_their_fields() -> None:
    assert LeaderIdAndEpoch(leader_id=1) == LeaderIdAndEpoch(leader_id=1)
    assert LeaderIdAndEpoch(leader_id=1) != LeaderIdAndEpoch(leader_id=2)
    assert LeaderIdAndEpoch() != EpochEndOffset()
    assert repr(LeaderIdAndEpoch(leader_id=1)) == "LeaderIdAndEpoch(leader_id=1, leader_epoch=-1)"


def produce_request(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=2, records=records)
    topic = TopicProduceData(name="topic", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def fetch_response(*records: bytes | FileRegion | None) -> FetchResponse:
    return fetch_response_of(*(PartitionData(records=data) for data in records))


def fetch_response_of(*partitions: PartitionData) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(partitions=list(partitions))])
