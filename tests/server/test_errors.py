"""Every request can be told that it failed, in every version it may have been asked in."""

from typing import Any

import pytest
from tests.logged import logged

from barnabas.log.failures import LogDirFailure
from barnabas.server.api import HANDLERS
from barnabas.server.errors import failure_of
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.error_response import error_counter, error_response
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.wire.schema import Message

CODE = ErrorCode.NOT_CONTROLLER


def the_error(request: Message, version: int) -> Any:
    """The error answer as a client reads it."""
    response = error_response(request, version, CODE, "why")
    assert response is not None
    return type(response).read_exactly(response.write(version), version)


@pytest.mark.parametrize("key", HANDLERS)
def test_every_api_can_answer_an_error_in_every_version(key: ApiKey) -> None:
    for version in api(key).versions:
        the_error(a_produce() if key is ApiKey.PRODUCE else api(key).request(), version)


def a_produce(acks: int = 1) -> ProduceRequest:
    partitions = [PartitionProduceData(index=index) for index in (3, 4)]
    return ProduceRequest(
        acks=acks,
        topic_data=[TopicProduceData(name="t", topic_id=b"i" * 16, partition_data=partitions)],
    )


def test_produce_names_every_partition() -> None:
    (topic,) = the_error(a_produce(), 12).responses
    assert topic.name == "t"
    told = [
        (p.index, p.error_code, p.base_offset, p.error_message) for p in topic.partition_responses
    ]
    assert told == [(3, CODE, -1, "why"), (4, CODE, -1, "why")]
    (topic,) = the_error(a_produce(), 13).responses
    assert topic.topic_id == b"i" * 16


def test_a_transactions_partitions_are_told_one_by_one_before_version_4() -> None:
    topics = [AddPartitionsToTxnTopic(name="t", partitions=[0, 2])]
    request = AddPartitionsToTxnRequest(v3_and_below_topics=topics)
    response = error_response(request, 3, ErrorCode.CONCURRENT_TRANSACTIONS)
    assert isinstance(response, AddPartitionsToTxnResponse)
    (topic,) = response.results_by_topic_v3_and_below
    assert topic.name == "t"
    assert [
        (each.partition_index, each.partition_error_code) for each in topic.results_by_partition
    ] == [(0, ErrorCode.CONCURRENT_TRANSACTIONS), (2, ErrorCode.CONCURRENT_TRANSACTIONS)]


def test_produce_without_acks_is_not_answered() -> None:
    assert error_response(a_produce(acks=0), 9, CODE) is None


def test_fetch_tells_partitions_before_version_13_and_the_top_from_7() -> None:
    topic = FetchTopic(topic="t", topic_id=b"i" * 16, partitions=[FetchPartition(partition=2)])
    old = the_error(FetchRequest(topics=[topic]), 6)
    assert old.responses[0].partitions[0].error_code == CODE
    assert old.responses[0].partitions[0].high_watermark == -1
    request = FetchRequest(session_id=9, session_epoch=3, topics=[topic])
    middle = the_error(request, 12)
    assert (middle.error_code, middle.session_id) == (CODE, 9)
    assert middle.responses[0].partitions[0].partition_index == 2
    new = the_error(request, 13)
    assert (new.error_code, new.responses) == (CODE, [])


@pytest.mark.parametrize("version", [5, 6])
def test_delete_topics_names_topics_wherever_the_version_has_them(version: int) -> None:
    if version < 6:
        request = DeleteTopicsRequest(topic_names=["a", "b"])
    else:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=n) for n in ("a", "b")])
    told = [(r.name, r.error_code) for r in the_error(request, version).responses]
    assert told == [("a", CODE), ("b", CODE)]


def test_names_and_codes_are_where_each_api_has_them() -> None:
    (topic,) = the_error(
        CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=5)]), 7
    ).topics
    assert (topic.name, topic.error_code, topic.num_partitions) == ("t", CODE, -1)
    (topic,) = the_error(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=6)])
            ]
        ),
        2,
    ).topics
    (partition,) = topic.partitions
    told = (topic.name, partition.partition_index, partition.error_code, partition.low_watermark)
    assert told == ("t", 6, CODE, -1)
    (resource,) = the_error(
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name="t")]
        ),
        4,
    ).results
    assert (resource.resource_type, resource.resource_name, resource.error_code) == (2, "t", CODE)
    (topic,) = the_error(
        DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[1, 2])]), 0
    ).topics
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(1, CODE), (2, CODE)]


def test_elect_leaders_tells_the_top_from_version_1_and_partitions_always() -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[8])])
    for version, top in ((0, 0), (1, CODE), (2, CODE)):
        response = the_error(request, version)
        (topic,) = response.replica_election_results
        assert response.error_code == top
        assert [(p.partition_id, p.error_code) for p in topic.partition_result] == [(8, CODE)]
    assert the_error(ElectLeadersRequest(topic_partitions=None), 0).replica_election_results == []


def test_alter_replica_log_dirs_is_asked_by_directory_and_told_by_topic() -> None:
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[1, 2])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/d", topics=topics)])
    (topic,) = the_error(request, 2).results
    assert topic.topic_name == "t"
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(1, CODE), (2, CODE)]


def test_metadata_of_a_nameless_topic_has_an_empty_name_where_null_is_not_allowed() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"i" * 16)])
    assert the_error(request, 10).topics[0].name == ""
    assert the_error(request, 12).topics[0].name is None
    assert the_error(request, 13).error_code == CODE


def test_a_refused_join_has_no_protocol_and_a_refused_leave_no_members() -> None:
    for version, protocol in (6, ""), (7, None):
        joined = the_error(JoinGroupRequest(group_id="g"), version)
        assert (joined.error_code, joined.protocol_name) == (CODE, protocol)
    leaving = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
    left = the_error(leaving, 3)
    assert (left.error_code, left.members) == (CODE, [])


def test_a_refused_producer_gets_no_id_and_no_epoch() -> None:
    response = the_error(InitProducerIdRequest(), 5)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (CODE, -1, -1)


class _Call:
    api_version, host, client_id = 9, "10.0.0.1", "k"


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (KafkaError(ErrorCode.INVALID_REQUEST, "why"), ErrorCode.INVALID_REQUEST),
        (LogDirFailure("/d", OSError(28, "full")), ErrorCode.KAFKA_STORAGE_ERROR),
        (TimeoutError(), ErrorCode.REQUEST_TIMED_OUT),
        (ZeroDivisionError("oh"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_exceptions_have_codes(failure: Exception, code: ErrorCode) -> None:
    call: Any = _Call()
    assert failure_of(failure, "Produce", call)[0] is code


def test_a_fault_of_ours_leaves_a_traceback_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    call: Any = _Call()
    failure_of(ZeroDivisionError("oh"), "Produce", call)
    (record,) = logged(caplog)
    assert "Produce v9 from 10.0.0.1" in record.getMessage()
    assert record.exc_info is not None


def test_errors_are_counted_wherever_an_answer_has_them() -> None:
    for request, version, codes in [
        (a_produce(), 9, 2),
        (CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in "abc"]), 7, 3),
        (InitProducerIdRequest(), 5, 1),
        (ElectLeadersRequest(topic_partitions=[TopicPartitions(partitions=[1, 2])]), 2, 3),
        (WriteTxnMarkersRequest(markers=[a_marker(2), a_marker(1)]), 2, 3),
    ]:
        metrics = RequestMetrics()
        response = error_response(request, version, CODE)
        error_counter(type(response), metrics.errors)(response)  # type: ignore[arg-type]
        assert metrics.errors == {CODE: codes}


def a_marker(partitions: int) -> WritableTxnMarker:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=list(range(partitions)))
    return WritableTxnMarker(topics=[topic])


@pytest.mark.parametrize("key", HANDLERS)
def test_errors_of_every_api_can_be_counted(key: ApiKey) -> None:
    metrics = RequestMetrics()
    error_counter(api(key).response, metrics.errors)(api(key).response())
    assert sum(metrics.errors.values()) <= 1
