"""What every API of a broker needs: a request, the permissions in their order, and the errors.

The table is tested against Barnabas alone, compared with the real Kafka, and it is the source of
the table in docs/security.md.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.requests import fetch, list_offsets, produce
from tests.conformance.side_by_side.sides import Side

from barnabas.config.changes import ConfigResourceType
from barnabas.security.authorizer.model import (
    CLUSTER,
    AclOperation,
    Resource,
    group_resource,
    topic_resource,
    transactional_id_resource,
)
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from barnabas.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    EntityData,
    RequestEntryData,
)
from barnabas.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    ListConfigResourcesRequest,
)
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.fetch import ReplicaState
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from barnabas.wire.messages.metadata import TopicRequest as DescribedTopic
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.raft_voters import AddRaftVoterRequest, RemoveRaftVoterRequest
from barnabas.wire.messages.registrations import UnregisterBrokerRequest
from barnabas.wire.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
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
    ListTransactionsRequest,
)
from barnabas.wire.messages.transaction_descriptions import TopicRequest as ProducersTopic
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
)
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.schema import Message
from barnabas.wire.uuid import ZERO

GUARDED, EMPTY, ABSENT = "guarded", "guarded-empty", "absent"
"""A topic with records; a topic to change; a topic that does not exist."""

GROUP_ID, TRANSACTIONAL_ID = "guarded-group", "guarded-id"

TOPIC = topic_resource(GUARDED)
EMPTY_TOPIC = topic_resource(EMPTY)
ABSENT_TOPIC = topic_resource(ABSENT)
GROUP = group_resource(GROUP_ID)
TRANSACTION = transactional_id_resource(TRANSACTIONAL_ID)

TAF = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GAF = ErrorCode.GROUP_AUTHORIZATION_FAILED
CAF = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
XAF = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
HIDDEN = None
"""Instead of an error: what the client may not see is left out."""

READ, WRITE, CREATE, DELETE = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
)
ALTER, DESCRIBE, CLUSTER_ACTION = (
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
)
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS

Build = Callable[[Side, int], Message | None]


class Need(NamedTuple):
    """A permission, and the error without it."""

    operation: AclOperation
    resource: Resource
    error: ErrorCode | None


class Case(NamedTuple):
    """A request that needs permissions, in the order in which they are checked."""

    key: ApiKey
    variant: str
    build: Build
    needs: tuple[Need, ...]


def always(request: Message) -> Build:
    return lambda *_: request


def from_version(first: int, build: Build) -> Build:
    """Skips older versions; version -1 is the probe for the API's key."""
    return lambda side, version: None if 0 <= version < first else build(side, version)


def until_version(last: int, build: Build) -> Build:
    return lambda side, version: None if version > last else build(side, version)


def metadata(topic: str | None = None, *, by_id: bool = False, creates: bool = False) -> Build:
    def build(side: Side, version: int) -> Message:
        topics = None
        if topic is not None:
            topic_id = side.topic_id(topic) if by_id else ZERO
            topics = [MetadataRequestTopic(name=None if by_id else topic, topic_id=topic_id)]
        return MetadataRequest(
            topics=topics,
            allow_auto_topic_creation=creates if version >= 4 else True,
            include_topic_authorized_operations=version >= 8,
            include_cluster_authorized_operations=8 <= version <= 10,
        )

    return build


def produce_in(topic: str) -> Build:
    def build(side: Side, version: int) -> Message:
        topic_id = side.topic_id(topic) if version >= 13 else ZERO
        return produce(topic, batch(), topic_id=topic_id)

    return build


def transactional_produce(side: Side, version: int) -> Message:
    topic_id = side.topic_id(GUARDED) if version >= 13 else ZERO
    records = batch(producer_id=9_999, producer_epoch=0, base_sequence=0, transactional=True)
    return produce(GUARDED, records, topic_id=topic_id, transactional_id=TRANSACTIONAL_ID)


def fetch_from(topic: str, replica_id: int = -1) -> Build:
    def build(side: Side, version: int) -> Message:
        topic_id = side.topic_id(topic) if version >= 13 else ZERO
        request = fetch(topic, topic_id=topic_id, replica_id=-1 if version >= 15 else replica_id)
        if version >= 15:
            request.replica_state = ReplicaState(replica_id=replica_id)
        return request

    return build


def offset_commit(side: Side, version: int) -> Message:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic_id = side.topic_id(GUARDED) if version >= 10 else ZERO
    topic = OffsetCommitRequestTopic(name=GUARDED, topic_id=topic_id, partitions=[partition])
    return OffsetCommitRequest(group_id=GROUP_ID, topics=[topic])


def offset_fetch(topic: str | None) -> Build:
    def build(side: Side, version: int) -> Message | None:
        if topic is None and 0 <= version < 2:
            return None
        if version < 8:
            named = OffsetFetchRequestTopic(name=topic or "", partition_indexes=[0])
            topics = None if topic is None else [named]
            return OffsetFetchRequest(group_id=GROUP_ID, topics=topics)
        topic_id = side.topic_id(topic) if topic is not None and version >= 10 else ZERO
        identified = OffsetFetchRequestTopics(
            name=topic or "", topic_id=topic_id, partition_indexes=[0]
        )
        group = OffsetFetchRequestGroup(
            group_id=GROUP_ID, topics=None if topic is None else [identified]
        )
        return OffsetFetchRequest(groups=[group])

    return build


def find_coordinator(key: str, key_type: int) -> Build:
    def build(_: Side, version: int) -> Message:
        if version >= 4:
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return FindCoordinatorRequest(key=key, key_type=key_type)

    return from_version(1 if key_type else 0, build)


def add_partitions(_: Side, version: int) -> Message:
    topics = [
        AddPartitionsToTxnTopic(name=GUARDED, partitions=[0]),
        AddPartitionsToTxnTopic(name=EMPTY, partitions=[0]),
    ]
    if version < 4:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTIONAL_ID,
            v3_and_below_producer_id=9_999,
            v3_and_below_topics=topics,
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=TRANSACTIONAL_ID, producer_id=9_999, topics=topics
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def txn_offset_commit(side: Side, version: int) -> Message:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic_id = side.topic_id(GUARDED) if version >= 6 else ZERO
    topic = TxnOffsetCommitRequestTopic(name=GUARDED, topic_id=topic_id, partitions=[partition])
    return TxnOffsetCommitRequest(
        transactional_id=TRANSACTIONAL_ID, group_id=GROUP_ID, producer_id=9_999, topics=[topic]
    )


def leave(_: Side, version: int) -> Message:
    if version < 3:
        return LeaveGroupRequest(group_id=GROUP_ID, member_id="nobody")
    return LeaveGroupRequest(group_id=GROUP_ID, members=[MemberIdentity(member_id="nobody")])


def delete_topics(topic: str, *, by_id: bool = False) -> Build:
    def build(side: Side, version: int) -> Message:
        if version < 6:
            return DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000)
        state = DeleteTopicState(name=topic)
        if by_id:
            state = DeleteTopicState(topic_id=side.topic_id(topic))
        return DeleteTopicsRequest(topics=[state], timeout_ms=5000)

    return from_version(6, build) if by_id else build


def describe_configs(resource_type: int, name: str, key: str) -> Build:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=[key]
    )
    return always(DescribeConfigsRequest(resources=[resource]))


def incremental(resource_type: int, name: str, key: str, value: str) -> Build:
    config = IncrementalAlterableConfig(name=key, config_operation=0, value=value)
    resource = IncrementalAlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[config]
    )
    return always(IncrementalAlterConfigsRequest(resources=[resource], validate_only=True))


def alter_configs(resource_type: int, name: str, key: str, value: str) -> Build:
    resource = AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value)],
    )
    return always(AlterConfigsRequest(resources=[resource], validate_only=True))


def create_topic(name: str) -> Build:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return always(CreateTopicsRequest(topics=[topic], timeout_ms=5000, validate_only=True))


NEW_ACL = AclCreation(
    resource_type=TOPIC.type,
    resource_name="other",
    resource_pattern_type=3,
    principal="User:other",
    host="*",
    operation=READ,
    permission_type=3,
)
NO_ACL = DeleteAclsFilter(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter="User:nobody",
    host_filter=None,
    operation=1,
    permission_type=1,
)
ANY_ACL_OF_NOBODY = DescribeAclsRequest(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter="User:nobody",
    host_filter=None,
    operation=1,
    permission_type=1,
)
NEW_TOPIC = "guarded-new"
TOPIC_CONFIGS, BROKER_CONFIGS, LOGGERS, GROUP_CONFIGS, CLIENT_METRICS = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS,
)
K = ApiKey

CASES = [
    Case(K.PRODUCE, "", produce_in(GUARDED), (Need(WRITE, TOPIC, TAF),)),
    Case(
        K.PRODUCE,
        "in a transaction",
        transactional_produce,
        (Need(WRITE, TRANSACTION, XAF), Need(WRITE, TOPIC, TAF)),
    ),
    Case(
        K.PRODUCE,
        "to a topic that does not exist",
        until_version(12, produce_in(ABSENT)),
        (Need(WRITE, ABSENT_TOPIC, TAF),),
    ),
    Case(K.FETCH, "by a consumer", fetch_from(GUARDED), (Need(READ, TOPIC, TAF),)),
    Case(
        K.FETCH,
        "of a topic that does not exist",
        until_version(12, fetch_from(ABSENT)),
        (Need(READ, ABSENT_TOPIC, TAF),),
    ),
    Case(K.FETCH, "by a broker", fetch_from(GUARDED, 99), (Need(CLUSTER_ACTION, CLUSTER, TAF),)),
    Case(K.LIST_OFFSETS, "", always(list_offsets(GUARDED, -1)), (Need(DESCRIBE, TOPIC, TAF),)),
    Case(
        K.LIST_OFFSETS,
        "of a topic that does not exist",
        always(list_offsets(ABSENT, -1)),
        (Need(DESCRIBE, ABSENT_TOPIC, TAF),),
    ),
    Case(K.METADATA, "by name", metadata(GUARDED), (Need(DESCRIBE, TOPIC, TAF),)),
    Case(
        K.METADATA,
        "by id",
        from_version(12, metadata(GUARDED, by_id=True)),
        (Need(DESCRIBE, TOPIC, TAF),),
    ),
    Case(K.METADATA, "of all topics", metadata(), (Need(DESCRIBE, TOPIC, HIDDEN),)),
    Case(
        K.METADATA,
        "of a topic that does not exist",
        from_version(4, metadata(ABSENT)),
        (Need(DESCRIBE, ABSENT_TOPIC, TAF),),
    ),
    Case(K.OFFSET_COMMIT, "", offset_commit, (Need(READ, GROUP, GAF), Need(READ, TOPIC, TAF))),
    Case(
        K.OFFSET_FETCH,
        "of named topics",
        offset_fetch(GUARDED),
        (Need(DESCRIBE, GROUP, GAF), Need(DESCRIBE, TOPIC, TAF)),
    ),
    Case(
        K.OFFSET_FETCH,
        "of all topics",
        offset_fetch(None),
        (Need(DESCRIBE, GROUP, GAF), Need(DESCRIBE, TOPIC, HIDDEN)),
    ),
    Case(
        K.FIND_COORDINATOR,
        "of a group",
        find_coordinator(GROUP_ID, 0),
        (Need(DESCRIBE, GROUP, GAF),),
    ),
    Case(
        K.FIND_COORDINATOR,
        "of a transaction",
        find_coordinator(TRANSACTIONAL_ID, 1),
        (Need(DESCRIBE, TRANSACTION, XAF),),
    ),
    Case(
        K.JOIN_GROUP,
        "",
        always(
            JoinGroupRequest(
                group_id=GROUP_ID,
                session_timeout_ms=1,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
        ),
        (Need(READ, GROUP, GAF),),
    ),
    Case(
        K.HEARTBEAT,
        "",
        always(HeartbeatRequest(group_id=GROUP_ID, member_id="nobody")),
        (Need(READ, GROUP, GAF),),
    ),
    Case(K.LEAVE_GROUP, "", leave, (Need(READ, GROUP, GAF),)),
    Case(
        K.SYNC_GROUP,
        "",
        always(
            SyncGroupRequest(
                group_id=GROUP_ID,
                member_id="nobody",
                protocol_type="consumer",
                protocol_name="range",
            )
        ),
        (Need(READ, GROUP, GAF),),
    ),
    Case(
        K.DESCRIBE_GROUPS,
        "",
        lambda _, version: DescribeGroupsRequest(
            groups=[GROUP_ID], include_authorized_operations=version >= 3
        ),
        (Need(DESCRIBE, GROUP, GAF),),
    ),
    Case(K.LIST_GROUPS, "", always(ListGroupsRequest()), (Need(DESCRIBE, GROUP, HIDDEN),)),
    Case(
        K.LIST_GROUPS,
        "with a permission on the cluster",
        always(ListGroupsRequest()),
        (Need(DESCRIBE, CLUSTER, HIDDEN),),
    ),
    Case(
        K.CREATE_TOPICS,
        "",
        create_topic(NEW_TOPIC),
        (
            Need(CREATE, topic_resource(NEW_TOPIC), TAF),
            Need(DESCRIBE_CONFIGS, topic_resource(NEW_TOPIC), HIDDEN),
        ),
    ),
    Case(
        K.CREATE_TOPICS,
        "with a permission on the cluster",
        create_topic(NEW_TOPIC),
        (Need(CREATE, CLUSTER, TAF), Need(DESCRIBE_CONFIGS, topic_resource(NEW_TOPIC), HIDDEN)),
    ),
    Case(
        K.DELETE_TOPICS,
        "by name",
        delete_topics("guarded-deleted"),
        (
            Need(DESCRIBE, topic_resource("guarded-deleted"), TAF),
            Need(DELETE, topic_resource("guarded-deleted"), TAF),
        ),
    ),
    Case(
        K.DELETE_TOPICS,
        "by id",
        delete_topics("guarded-removed", by_id=True),
        (Need(DELETE, topic_resource("guarded-removed"), TAF),),
    ),
    Case(
        K.DELETE_TOPICS,
        "of a topic that does not exist",
        delete_topics(ABSENT),
        (Need(DESCRIBE, ABSENT_TOPIC, TAF),),
    ),
    Case(
        K.DELETE_RECORDS,
        "",
        always(
            DeleteRecordsRequest(
                timeout_ms=5000,
                topics=[
                    DeleteRecordsTopic(
                        name=EMPTY, partitions=[DeleteRecordsPartition(partition_index=0, offset=0)]
                    )
                ],
            )
        ),
        (Need(DELETE, EMPTY_TOPIC, TAF),),
    ),
    Case(
        K.INIT_PRODUCER_ID,
        "with a transactional id",
        always(
            InitProducerIdRequest(
                transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000_000
            )
        ),
        (Need(WRITE, TRANSACTION, XAF),),
    ),
    Case(
        K.INIT_PRODUCER_ID,
        "of an idempotent producer",
        always(InitProducerIdRequest(transactional_id=None)),
        (Need(AclOperation.IDEMPOTENT_WRITE, CLUSTER, CAF),),
    ),
    Case(
        K.INIT_PRODUCER_ID,
        "of an idempotent producer that may write to some topic",
        always(InitProducerIdRequest(transactional_id=None)),
        (Need(WRITE, TOPIC, CAF),),
    ),
    Case(
        K.OFFSET_FOR_LEADER_EPOCH,
        "",
        always(
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(
                        topic=GUARDED, partitions=[OffsetForLeaderPartition(partition=0)]
                    )
                ]
            )
        ),
        (Need(DESCRIBE, TOPIC, TAF),),
    ),
    Case(
        K.OFFSET_FOR_LEADER_EPOCH,
        "by a broker",
        always(
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(
                        topic=GUARDED, partitions=[OffsetForLeaderPartition(partition=0)]
                    )
                ]
            )
        ),
        (Need(CLUSTER_ACTION, CLUSTER, TAF),),
    ),
    Case(
        K.ADD_PARTITIONS_TO_TXN,
        "",
        until_version(3, add_partitions),
        (
            Need(WRITE, TRANSACTION, XAF),
            Need(WRITE, TOPIC, TAF),
            Need(WRITE, EMPTY_TOPIC, TAF),
        ),
    ),
    Case(
        K.ADD_PARTITIONS_TO_TXN,
        "by a broker",
        from_version(4, add_partitions),
        (Need(CLUSTER_ACTION, CLUSTER, CAF),),
    ),
    Case(
        K.ADD_OFFSETS_TO_TXN,
        "",
        always(
            AddOffsetsToTxnRequest(
                transactional_id=TRANSACTIONAL_ID, producer_id=9_999, group_id=GROUP_ID
            )
        ),
        (Need(WRITE, TRANSACTION, XAF), Need(READ, GROUP, GAF)),
    ),
    Case(
        K.END_TXN,
        "",
        always(EndTxnRequest(transactional_id=TRANSACTIONAL_ID, producer_id=9_999)),
        (Need(WRITE, TRANSACTION, XAF),),
    ),
    Case(
        K.WRITE_TXN_MARKERS,
        "by an administrator",
        always(
            WriteTxnMarkersRequest(
                markers=[
                    WritableTxnMarker(
                        producer_id=9_999,
                        topics=[WritableTxnMarkerTopic(name=ABSENT, partition_indexes=[0])],
                    )
                ]
            )
        ),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.WRITE_TXN_MARKERS,
        "by a broker",
        always(
            WriteTxnMarkersRequest(
                markers=[
                    WritableTxnMarker(
                        producer_id=9_999,
                        topics=[WritableTxnMarkerTopic(name=ABSENT, partition_indexes=[0])],
                    )
                ]
            )
        ),
        (Need(CLUSTER_ACTION, CLUSTER, CAF),),
    ),
    Case(
        K.TXN_OFFSET_COMMIT,
        "",
        txn_offset_commit,
        (Need(WRITE, TRANSACTION, XAF), Need(READ, GROUP, GAF), Need(READ, TOPIC, TAF)),
    ),
    Case(K.DESCRIBE_ACLS, "", always(ANY_ACL_OF_NOBODY), (Need(DESCRIBE, CLUSTER, CAF),)),
    Case(
        K.CREATE_ACLS,
        "",
        always(CreateAclsRequest(creations=[NEW_ACL])),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.DELETE_ACLS, "", always(DeleteAclsRequest(filters=[NO_ACL])), (Need(ALTER, CLUSTER, CAF),)
    ),
    Case(
        K.DESCRIBE_CONFIGS,
        "of a topic",
        describe_configs(TOPIC_CONFIGS, GUARDED, "retention.ms"),
        (Need(DESCRIBE_CONFIGS, TOPIC, TAF),),
    ),
    Case(
        K.DESCRIBE_CONFIGS,
        "of a broker",
        describe_configs(BROKER_CONFIGS, "1", "num.io.threads"),
        (Need(DESCRIBE_CONFIGS, CLUSTER, CAF),),
    ),
    Case(
        K.DESCRIBE_CONFIGS,
        "of a group",
        describe_configs(GROUP_CONFIGS, GROUP_ID, "consumer.session.timeout.ms"),
        (Need(DESCRIBE_CONFIGS, GROUP, GAF),),
    ),
    Case(
        K.ALTER_CONFIGS,
        "of a topic",
        alter_configs(TOPIC_CONFIGS, GUARDED, "retention.ms", "1000"),
        (Need(ALTER_CONFIGS, TOPIC, TAF),),
    ),
    Case(
        K.ALTER_CONFIGS,
        "of all brokers",
        alter_configs(BROKER_CONFIGS, "", "message.max.bytes", "5000"),
        (Need(ALTER_CONFIGS, CLUSTER, CAF),),
    ),
    Case(
        K.INCREMENTAL_ALTER_CONFIGS,
        "of a topic",
        incremental(TOPIC_CONFIGS, GUARDED, "retention.ms", "1000"),
        (Need(ALTER_CONFIGS, TOPIC, TAF),),
    ),
    Case(
        K.INCREMENTAL_ALTER_CONFIGS,
        "of a group",
        incremental(GROUP_CONFIGS, GROUP_ID, "consumer.session.timeout.ms", "50000"),
        (Need(ALTER_CONFIGS, GROUP, GAF),),
    ),
    Case(
        K.INCREMENTAL_ALTER_CONFIGS,
        "of client metrics",
        incremental(CLIENT_METRICS, "watch", "interval.ms", "1000"),
        (Need(ALTER_CONFIGS, CLUSTER, CAF),),
    ),
    Case(
        K.INCREMENTAL_ALTER_CONFIGS,
        "of loggers",
        incremental(LOGGERS, "1", "root", "INFO"),
        (Need(ALTER_CONFIGS, CLUSTER, CAF),),
    ),
    Case(
        K.ALTER_REPLICA_LOG_DIRS,
        "",
        always(
            AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDir(
                        path="/nowhere",
                        topics=[AlterReplicaLogDirTopic(name=GUARDED, partitions=[0])],
                    )
                ]
            )
        ),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.DESCRIBE_LOG_DIRS,
        "",
        always(DescribeLogDirsRequest(topics=[])),
        (Need(DESCRIBE, CLUSTER, CAF),),
    ),
    Case(
        K.CREATE_PARTITIONS,
        "",
        always(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=GUARDED, count=5, assignments=None)],
                timeout_ms=5000,
                validate_only=True,
            )
        ),
        (Need(ALTER, TOPIC, TAF),),
    ),
    Case(
        K.DELETE_GROUPS,
        "",
        always(DeleteGroupsRequest(groups_names=["guarded-old-group"])),
        (Need(DELETE, group_resource("guarded-old-group"), GAF),),
    ),
    Case(
        K.ELECT_LEADERS,
        "",
        always(
            ElectLeadersRequest(
                topic_partitions=[TopicPartitions(topic=GUARDED, partitions=[0])], timeout_ms=5000
            )
        ),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.ALTER_PARTITION_REASSIGNMENTS,
        "",
        always(
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name=GUARDED, partitions=[ReassignablePartition(partition_index=0)]
                    )
                ]
            )
        ),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.LIST_PARTITION_REASSIGNMENTS,
        "",
        always(ListPartitionReassignmentsRequest()),
        (Need(DESCRIBE, CLUSTER, CAF),),
    ),
    Case(
        K.OFFSET_DELETE,
        "",
        always(
            OffsetDeleteRequest(
                group_id=GROUP_ID,
                topics=[
                    OffsetDeleteRequestTopic(
                        name=EMPTY, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                    )
                ],
            )
        ),
        (Need(DELETE, GROUP, GAF), Need(READ, EMPTY_TOPIC, TAF)),
    ),
    Case(
        K.DESCRIBE_CLIENT_QUOTAS,
        "",
        always(DescribeClientQuotasRequest(components=[])),
        (Need(DESCRIBE_CONFIGS, CLUSTER, CAF),),
    ),
    Case(
        K.ALTER_CLIENT_QUOTAS,
        "",
        always(
            AlterClientQuotasRequest(
                entries=[
                    RequestEntryData(entity=[EntityData(entity_type="user", entity_name="nobody")])
                ],
                validate_only=True,
            )
        ),
        (Need(ALTER_CONFIGS, CLUSTER, CAF),),
    ),
    Case(
        K.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "",
        always(DescribeUserScramCredentialsRequest()),
        (Need(DESCRIBE, CLUSTER, CAF),),
    ),
    Case(
        K.ALTER_USER_SCRAM_CREDENTIALS,
        "",
        always(
            AlterUserScramCredentialsRequest(
                deletions=[ScramCredentialDeletion(name="nobody", mechanism=1)]
            )
        ),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.DESCRIBE_QUORUM,
        "",
        always(
            DescribeQuorumRequest(
                topics=[
                    RequestTopicData(
                        topic_name="nothing", partitions=[RequestPartitionData(partition_index=0)]
                    )
                ]
            )
        ),
        (Need(DESCRIBE, CLUSTER, CAF),),
    ),
    Case(
        K.UPDATE_FEATURES,
        "",
        always(
            UpdateFeaturesRequest(
                feature_updates=[FeatureUpdateKey(feature="nothing", max_version_level=1)]
            )
        ),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.DESCRIBE_PRODUCERS,
        "",
        always(
            DescribeProducersRequest(topics=[ProducersTopic(name=GUARDED, partition_indexes=[0])])
        ),
        (Need(READ, TOPIC, TAF),),
    ),
    Case(
        K.UNREGISTER_BROKER,
        "",
        always(UnregisterBrokerRequest(broker_id=99)),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.DESCRIBE_TRANSACTIONS,
        "",
        always(DescribeTransactionsRequest(transactional_ids=[TRANSACTIONAL_ID])),
        (Need(DESCRIBE, TRANSACTION, XAF),),
    ),
    Case(
        K.LIST_TRANSACTIONS,
        "",
        always(ListTransactionsRequest()),
        (Need(DESCRIBE, transactional_id_resource("guarded-listed-id"), HIDDEN),),
    ),
    Case(
        K.CONSUMER_GROUP_HEARTBEAT,
        "",
        always(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP_ID,
                member_id="nobody",
                member_epoch=5,
                subscribed_topic_names=[GUARDED],
            )
        ),
        (Need(READ, GROUP, GAF), Need(DESCRIBE, TOPIC, TAF)),
    ),
    Case(
        K.CONSUMER_GROUP_DESCRIBE,
        "",
        always(
            ConsumerGroupDescribeRequest(
                group_ids=["guarded-consumers"], include_authorized_operations=True
            )
        ),
        (Need(DESCRIBE, group_resource("guarded-consumers"), GAF), Need(DESCRIBE, TOPIC, TAF)),
    ),
    Case(
        K.LIST_CONFIG_RESOURCES,
        "",
        always(ListConfigResourcesRequest()),
        (Need(DESCRIBE_CONFIGS, CLUSTER, CAF),),
    ),
    Case(
        K.DESCRIBE_TOPIC_PARTITIONS,
        "by name",
        always(
            DescribeTopicPartitionsRequest(
                topics=[DescribedTopic(name=GUARDED), DescribedTopic(name=ABSENT)]
            )
        ),
        (Need(DESCRIBE, TOPIC, TAF), Need(DESCRIBE, ABSENT_TOPIC, TAF)),
    ),
    Case(
        K.DESCRIBE_TOPIC_PARTITIONS,
        "of all topics",
        always(DescribeTopicPartitionsRequest()),
        (Need(DESCRIBE, TOPIC, HIDDEN),),
    ),
    Case(
        K.ADD_RAFT_VOTER,
        "",
        always(AddRaftVoterRequest(cluster_id=None, voter_id=99)),
        (Need(ALTER, CLUSTER, CAF),),
    ),
    Case(
        K.REMOVE_RAFT_VOTER,
        "",
        always(RemoveRaftVoterRequest(cluster_id=None, voter_id=99)),
        (Need(ALTER, CLUSTER, CAF),),
    ),
]
