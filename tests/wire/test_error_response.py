"""Every request has an error response in every version."""

from collections import defaultdict
from typing import Any

import pytest

from barnabas.wire.apis import ApiKey, api, apis
from barnabas.wire.error_response import error_counter, error_response
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    RequestDirectoryData,
)
from barnabas.wire.messages.classic_groups import (
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
)
from barnabas.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    EntityData,
    RequestEntryData,
)
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.configs import IncrementalAlterConfigsResource as IncrementalResource
from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.groups import DescribeGroupsRequest
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.producer_ids import AllocateProducerIdsRequest, InitProducerIdRequest
from barnabas.wire.messages.registrations import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    UnregisterBrokerRequest,
)
from barnabas.wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.wire.messages.transaction_descriptions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    TopicRequest,
)
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.schema import Message

CODE = ErrorCode.NOT_CONTROLLER


def read_error_response(request: Message, version: int) -> Any:
    """The error response as a client reads it."""
    response = error_response(request, version, CODE, "why")
    assert response is not None
    return type(response).read_exactly(response.write(version), version)


@pytest.mark.parametrize("key", [api.key for api in apis()])
def test_every_api_has_an_error_response_in_every_version(key: ApiKey) -> None:
    for version in api(key).versions:
        read_error_response(
            produce_request() if key is ApiKey.PRODUCE else api(key).request(), version
        )


def produce_request(acks: int = 1) -> ProduceRequest:
    partitions = [PartitionProduceData(index=index) for index in (3, 4)]
    return ProduceRequest(
        acks=acks,
        topic_data=[TopicProduceData(name="t", topic_id=b"i" * 16, partition_data=partitions)],
    )


def test_produce_reports_the_error_for_every_partition() -> None:
    (topic,) = read_error_response(produce_request(), 12).responses
    assert topic.name == "t"
    entries = [
        (p.index, p.error_code, p.base_offset, p.error_message) for p in topic.partition_responses
    ]
    assert entries == [(3, CODE, -1, "why"), (4, CODE, -1, "why")]
    (topic,) = read_error_response(produce_request(), 13).responses
    assert topic.topic_id == b"i" * 16


def test_add_partitions_to_txn_reports_every_partition_before_version_4() -> None:
    topics = [AddPartitionsToTxnTopic(name="t", partitions=[0, 2])]
    request = AddPartitionsToTxnRequest(v3_and_below_topics=topics)
    response = error_response(request, 3, ErrorCode.CONCURRENT_TRANSACTIONS)
    assert isinstance(response, AddPartitionsToTxnResponse)
    (topic,) = response.results_by_topic_v3_and_below
    assert topic.name == "t"
    assert [
        (result.partition_index, result.partition_error_code)
        for result in topic.results_by_partition
    ] == [(0, ErrorCode.CONCURRENT_TRANSACTIONS), (2, ErrorCode.CONCURRENT_TRANSACTIONS)]


def test_produce_without_acks_has_no_error_response() -> None:
    assert error_response(produce_request(acks=0), 9, CODE) is None


def test_fetch_reports_partitions_before_version_13_and_the_top_level_from_7() -> None:
    topic = FetchTopic(topic="t", topic_id=b"i" * 16, partitions=[FetchPartition(partition=2)])
    old = read_error_response(FetchRequest(topics=[topic]), 6)
    assert old.responses[0].partitions[0].error_code == CODE
    assert old.responses[0].partitions[0].high_watermark == -1
    request = FetchRequest(session_id=9, session_epoch=3, topics=[topic])
    middle = read_error_response(request, 12)
    assert (middle.error_code, middle.session_id) == (CODE, 9)
    assert middle.responses[0].partitions[0].partition_index == 2
    new = read_error_response(request, 13)
    assert (new.error_code, new.responses) == (CODE, [])


@pytest.mark.parametrize("version", [5, 6])
def test_delete_topics_reports_the_topics_of_the_list_that_its_version_has(version: int) -> None:
    if version < 6:
        request = DeleteTopicsRequest(topic_names=["a", "b"])
    else:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=n) for n in ("a", "b")])
    entries = [(r.name, r.error_code) for r in read_error_response(request, version).responses]
    assert entries == [("a", CODE), ("b", CODE)]


def test_entries_are_identified_by_the_fields_that_their_api_has() -> None:
    (topic,) = read_error_response(
        CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=5)]), 7
    ).topics
    assert (topic.name, topic.error_code, topic.num_partitions) == ("t", CODE, -1)
    (topic,) = read_error_response(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=6)])
            ]
        ),
        2,
    ).topics
    (partition,) = topic.partitions
    entries = (topic.name, partition.partition_index, partition.error_code, partition.low_watermark)
    assert entries == ("t", 6, CODE, -1)
    (resource,) = read_error_response(
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name="t")]
        ),
        4,
    ).results
    assert (resource.resource_type, resource.resource_name, resource.error_code) == (2, "t", CODE)
    (topic,) = read_error_response(
        DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[1, 2])]), 0
    ).topics
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(1, CODE), (2, CODE)]


def test_groups_and_transactions_report_the_error_by_their_ids() -> None:
    requests: list[tuple[Any, int]] = [
        (ConsumerGroupDescribeRequest(group_ids=["a", "b"]), 1),
        (DescribeGroupsRequest(groups=["a", "b"]), 6),
        (DescribeTransactionsRequest(transactional_ids=["a", "b"]), 0),
    ]
    for request, version in requests:
        response: Any = error_response(request, version, ErrorCode.UNSUPPORTED_VERSION)
        entries = getattr(response, "groups", None) or response.transaction_states
        ids = [getattr(each, "group_id", None) or each.transactional_id for each in entries]
        assert ids == ["a", "b"]


def test_elect_leaders_reports_the_top_level_from_version_1_and_partitions_always() -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[8])])
    for version, top in ((0, 0), (1, CODE), (2, CODE)):
        response = read_error_response(request, version)
        (topic,) = response.replica_election_results
        assert response.error_code == top
        assert [(p.partition_id, p.error_code) for p in topic.partition_result] == [(8, CODE)]
    assert (
        read_error_response(ElectLeadersRequest(topic_partitions=None), 0).replica_election_results
        == []
    )


def test_alter_replica_log_dirs_lists_directories_in_requests_and_topics_in_responses() -> None:
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[1, 2])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/d", topics=topics)])
    (topic,) = read_error_response(request, 2).results
    assert topic.topic_name == "t"
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(1, CODE), (2, CODE)]


def test_users_report_the_error_once_and_quotas_by_their_entities() -> None:
    users: Any = error_response(
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="a")],
            upsertions=[ScramCredentialUpsertion(name="b"), ScramCredentialUpsertion(name="a")],
        ),
        0,
        ErrorCode.NOT_CONTROLLER,
    )
    assert [result.user for result in users.results] == ["a", "b"]
    entity = [EntityData(entity_type="user", entity_name=None)]
    request = AlterClientQuotasRequest(entries=[RequestEntryData(entity=entity)])
    quotas: Any = error_response(request, 1, ErrorCode.NOT_CONTROLLER)
    assert [entry.entity for entry in quotas.entries] == [entity]
    described: Any = error_response(DescribeClientQuotasRequest(), 1, ErrorCode.NOT_CONTROLLER)
    assert described.entries is None


def test_metadata_of_a_nameless_topic_has_an_empty_name_where_null_is_not_allowed() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"i" * 16)])
    assert read_error_response(request, 10).topics[0].name == ""
    assert read_error_response(request, 12).topics[0].name is None
    assert read_error_response(request, 13).error_code == CODE


@pytest.mark.parametrize(
    "request_",
    [
        AlterPartitionRequest(topics=[RequestTopicData(partitions=[RequestPartitionData()])]),
        AssignReplicasToDirsRequest(directories=[RequestDirectoryData(topics=[])]),
        ListPartitionReassignmentsRequest(topics=None),
        UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="f")]),
        BrokerRegistrationRequest(),
        BrokerHeartbeatRequest(),
        UnregisterBrokerRequest(),
        AllocateProducerIdsRequest(),
        ControllerRegistrationRequest(),
    ],
    ids=lambda request: type(request).__name__,
)
def test_apis_of_brokers_and_the_cluster_report_only_at_the_top_level(request_: Message) -> None:
    for version in api(request_.API_KEY).versions:
        response = read_error_response(request_, version)
        assert response.error_code == CODE
        assert getattr(response, "error_message", "why") == "why"
        assert not any(isinstance(value, list) and value for value in vars_of(response).values())


def vars_of(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__slots__}


def test_topic_resource_and_reassignment_changes_report_every_entry() -> None:
    created = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", assignments=None)])
    for version in api(ApiKey.CREATE_PARTITIONS).versions:
        (topic,) = read_error_response(created, version).results
        assert (topic.name, topic.error_code, topic.error_message) == ("t", CODE, "why")
    for altered in (
        AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=2, resource_name="t")]),
        IncrementalAlterConfigsRequest(
            resources=[IncrementalResource(resource_type=2, resource_name="t")]
        ),
    ):
        for version in api(altered.API_KEY).versions:
            (resource,) = read_error_response(altered, version).responses
            assert (resource.resource_type, resource.resource_name) == (2, "t")
            assert (resource.error_code, resource.error_message) == (CODE, "why")
    partition = ReassignablePartition(partition_index=3)
    moved = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[partition])]
    )
    for version in api(ApiKey.ALTER_PARTITION_REASSIGNMENTS).versions:
        response = read_error_response(moved, version)
        assert (response.error_code, response.error_message) == (CODE, "why")
        (entry,) = response.responses[0].partitions
        assert (entry.partition_index, entry.error_code, entry.error_message) == (3, CODE, "why")


def test_a_failed_join_has_no_protocol_and_a_failed_leave_no_members() -> None:
    for version, protocol in (6, ""), (7, None):
        joined = read_error_response(JoinGroupRequest(group_id="g"), version)
        assert (joined.error_code, joined.protocol_name) == (CODE, protocol)
    leaving = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
    left = read_error_response(leaving, 3)
    assert (left.error_code, left.members) == (CODE, [])


def test_a_failed_init_producer_id_has_no_id_and_no_epoch() -> None:
    response = read_error_response(InitProducerIdRequest(), 5)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (CODE, -1, -1)


def test_errors_are_counted_at_the_top_level_and_in_entries() -> None:
    for request, version, codes in [
        (produce_request(), 9, 2),
        (CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in "abc"]), 7, 3),
        (InitProducerIdRequest(), 5, 1),
        (ElectLeadersRequest(topic_partitions=[TopicPartitions(partitions=[1, 2])]), 2, 3),
        (WriteTxnMarkersRequest(markers=[marker(2), marker(1)]), 2, 3),
    ]:
        counts: defaultdict[int, int] = defaultdict(int)
        response = error_response(request, version, CODE)
        error_counter(type(response), counts)(response)  # type: ignore[arg-type]
        assert counts == {CODE: codes}


def marker(partitions: int) -> WritableTxnMarker:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=list(range(partitions)))
    return WritableTxnMarker(topics=[topic])


@pytest.mark.parametrize("key", [api.key for api in apis()])
def test_errors_of_every_api_can_be_counted(key: ApiKey) -> None:
    counts: defaultdict[int, int] = defaultdict(int)
    error_counter(api(key).response, counts)(api(key).response())
    assert sum(counts.values()) <= 1
