"""`AdminClient`: the calls of `AioAdminClient` for programs without a loop, answered by futures.

Methods, arguments and results are those of `confluent_kafka.admin.AdminClient`: a call about
several things gives a dict with one future for each, every other call one future. Options, all
given by keyword, are those of the coroutine of the same name.
"""

import warnings
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from barnabas.client.admin.acls import AclBinding, AclBindingFilter
from barnabas.client.admin.calls import UNSET, Results
from barnabas.client.admin.cluster import DescribeClusterResult
from barnabas.client.admin.configs import ConfigEntry, ConfigResource
from barnabas.client.admin.enums import ElectionType
from barnabas.client.admin.features import FeatureMetadata, FeatureUpdate
from barnabas.client.admin.group_metadata import GroupListing, GroupMetadata
from barnabas.client.admin.group_values import ConsumerGroupDescription, ListConsumerGroupsResult
from barnabas.client.admin.log_dirs import (
    LogDirDescription,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from barnabas.client.admin.metadata import ClusterMetadata
from barnabas.client.admin.model import ConsumerGroupTopicPartitions, Node, TopicCollection, Uuid
from barnabas.client.admin.offsets import ListOffsetsResultInfo, OffsetSpec
from barnabas.client.admin.partitions import NewPartitions
from barnabas.client.admin.plain import PlainClient
from barnabas.client.admin.producers import ProducerState
from barnabas.client.admin.quorum import MetadataQuorum, RaftVoterEndpoint
from barnabas.client.admin.quotas import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
)
from barnabas.client.admin.reassignments import PartitionReassignment
from barnabas.client.admin.records import DeletedRecords
from barnabas.client.admin.scram import (
    UserScramCredentialAlteration,
    UserScramCredentialsDescription,
)
from barnabas.client.admin.topics import NewTopic, TopicDescription
from barnabas.client.admin.transactions import (
    AbortTransactionSpec,
    FencedProducer,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.errors import KafkaError
from barnabas.client.values import PreparedTransaction, TopicPartition
from barnabas.wire.messages.api_versions import ApiVersion

K = TypeVar("K")
V = TypeVar("V")


class AdminClient(PlainClient):
    """An admin client for any thread."""

    # The cluster

    def list_topics(self, topic: str | None = None, timeout: float = UNSET) -> ClusterMetadata:
        return self._now(self._core.list_topics(topic, timeout))

    def cluster_id(self, timeout: float = UNSET) -> str | None:
        return self._now(self._core.cluster_id(timeout))

    def describe_cluster(self, **kwargs: Any) -> "Future[DescribeClusterResult]":
        return self._one(self._core.describe_cluster(**kwargs))

    def describe_api_versions(self, **kwargs: Any) -> "Future[Results[Node, list[ApiVersion]]]":
        return self._one(self._core.describe_api_versions(**kwargs))

    def unregister_broker(self, broker_id: int, **kwargs: Any) -> "Future[None]":
        return self._one(self._core.unregister_broker(broker_id, **kwargs))

    # Topics and partitions

    def create_topics(self, new_topics: list[NewTopic], **kwargs: Any) -> "dict[str, Future[None]]":
        call = self._core.create_topics(new_topics, **kwargs)
        return self._each((topic.topic for topic in new_topics), call)

    def delete_topics(self, topics: list[str], **kwargs: Any) -> "dict[str, Future[None]]":
        return self._each(topics, self._core.delete_topics(topics, **kwargs))

    def describe_topics(
        self, topics: TopicCollection, **kwargs: Any
    ) -> "dict[str, Future[TopicDescription]]":
        call = self._core.describe_topics(topics, **kwargs)
        return self._each(topics.topic_names, call)

    def create_partitions(
        self, new_partitions: list[NewPartitions], **kwargs: Any
    ) -> "dict[str, Future[None]]":
        call = self._core.create_partitions(new_partitions, **kwargs)
        return self._each((each.topic for each in new_partitions), call)

    # Settings

    def describe_configs(
        self, resources: list[ConfigResource], **kwargs: Any
    ) -> "dict[ConfigResource, Future[dict[str, ConfigEntry]]]":
        return self._each(resources, self._core.describe_configs(resources, **kwargs))

    def alter_configs(
        self, resources: list[ConfigResource], **kwargs: Any
    ) -> "dict[ConfigResource, Future[None]]":
        warnings.warn(
            "alter_configs replaces all settings: incremental_alter_configs is safer",
            DeprecationWarning,
            stacklevel=2,
        )
        return self._each(resources, self._core.alter_configs(resources, **kwargs))

    def incremental_alter_configs(
        self, resources: list[ConfigResource], **kwargs: Any
    ) -> "dict[ConfigResource, Future[None]]":
        return self._each(resources, self._core.incremental_alter_configs(resources, **kwargs))

    def list_config_resources(
        self, types: Iterable[Any] = (), **kwargs: Any
    ) -> "Future[list[ConfigResource]]":
        return self._one(self._core.list_config_resources(types, **kwargs))

    # Groups

    def list_groups(self, group: str | None = None, timeout: float = UNSET) -> list[GroupMetadata]:
        warnings.warn(
            "list_groups is old: use list_consumer_groups and describe_consumer_groups",
            DeprecationWarning,
            stacklevel=2,
        )
        return self._now(self._core.list_groups(group, timeout))

    def list_group_listings(self, **kwargs: Any) -> "Future[list[GroupListing]]":
        return self._one(self._core.list_group_listings(**kwargs))

    def list_consumer_groups(self, **kwargs: Any) -> "Future[ListConsumerGroupsResult]":
        return self._one(self._core.list_consumer_groups(**kwargs))

    def describe_consumer_groups(
        self, group_ids: list[str], **kwargs: Any
    ) -> "dict[str, Future[ConsumerGroupDescription]]":
        return self._each(group_ids, self._core.describe_consumer_groups(group_ids, **kwargs))

    def delete_consumer_groups(
        self, group_ids: list[str], **kwargs: Any
    ) -> "dict[str, Future[None]]":
        return self._each(group_ids, self._core.delete_consumer_groups(group_ids, **kwargs))

    def remove_members_from_consumer_group(
        self, group_id: str, group_instance_ids: list[str] | None = None, **kwargs: Any
    ) -> "Future[Results[str, None]]":
        return self._one(
            self._core.remove_members_from_consumer_group(group_id, group_instance_ids, **kwargs)
        )

    def list_consumer_group_offsets(
        self,
        list_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        **kwargs: Any,
    ) -> "dict[str, Future[ConsumerGroupTopicPartitions]]":
        request = list_consumer_group_offsets_request
        call = self._core.list_consumer_group_offsets(request, **kwargs)
        return self._each((group.group_id for group in request), call)

    def alter_consumer_group_offsets(
        self,
        alter_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        **kwargs: Any,
    ) -> "dict[str, Future[ConsumerGroupTopicPartitions]]":
        request = alter_consumer_group_offsets_request
        call = self._core.alter_consumer_group_offsets(request, **kwargs)
        return self._each((group.group_id for group in request), call)

    def delete_consumer_group_offsets(
        self,
        delete_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        **kwargs: Any,
    ) -> "dict[str, Future[ConsumerGroupTopicPartitions]]":
        request = delete_consumer_group_offsets_request
        call = self._core.delete_consumer_group_offsets(request, **kwargs)
        return self._each((group.group_id for group in request), call)

    # Partitions: their offsets, records, leaders, replicas and producers

    def list_offsets(
        self, topic_partition_offsets: dict[TopicPartition, OffsetSpec], **kwargs: Any
    ) -> "dict[TopicPartition, Future[ListOffsetsResultInfo]]":
        call = self._core.list_offsets(topic_partition_offsets, **kwargs)
        asked = topic_partition_offsets.items()
        return self._each((TopicPartition(p.topic, p.partition, s._value) for p, s in asked), call)

    def delete_records(
        self, topic_partition_offsets: list[TopicPartition], **kwargs: Any
    ) -> "dict[TopicPartition, Future[DeletedRecords]]":
        call = self._core.delete_records(topic_partition_offsets, **kwargs)
        return self._each(topic_partition_offsets, call)

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: list[TopicPartition] | None = None,
        **kwargs: Any,
    ) -> "Future[dict[TopicPartition, KafkaError | None]]":
        return self._one(self._core.elect_leaders(election_type, partitions, **kwargs))

    def alter_partition_reassignments(
        self, reassignments: dict[TopicPartition, list[int] | None], **kwargs: Any
    ) -> "dict[TopicPartition, Future[None]]":
        call = self._core.alter_partition_reassignments(reassignments, **kwargs)
        return self._each(reassignments, call)

    def list_partition_reassignments(
        self, partitions: list[TopicPartition] | None = None, **kwargs: Any
    ) -> "Future[dict[TopicPartition, PartitionReassignment]]":
        return self._one(self._core.list_partition_reassignments(partitions, **kwargs))

    def describe_producers(
        self, partitions: list[TopicPartition], **kwargs: Any
    ) -> "dict[TopicPartition, Future[list[ProducerState]]]":
        return self._each(partitions, self._core.describe_producers(partitions, **kwargs))

    # Log directories

    def describe_log_dirs(
        self, broker_ids: list[int], **kwargs: Any
    ) -> "dict[int, Future[dict[str, LogDirDescription]]]":
        return self._each(broker_ids, self._core.describe_log_dirs(broker_ids, **kwargs))

    def describe_replica_log_dirs(
        self, replicas: list[TopicPartitionReplica], **kwargs: Any
    ) -> "dict[TopicPartitionReplica, Future[ReplicaLogDirInfo]]":
        return self._each(replicas, self._core.describe_replica_log_dirs(replicas, **kwargs))

    def alter_replica_log_dirs(
        self, replica_assignment: dict[TopicPartitionReplica, str], **kwargs: Any
    ) -> "dict[TopicPartitionReplica, Future[None]]":
        call = self._core.alter_replica_log_dirs(replica_assignment, **kwargs)
        return self._each(replica_assignment, call)

    # Transactions

    def list_transactions(self, **kwargs: Any) -> "Future[Results[int, list[TransactionListing]]]":
        return self._one(self._core.list_transactions(**kwargs))

    def describe_transactions(
        self, transactional_ids: list[str], **kwargs: Any
    ) -> "dict[str, Future[TransactionDescription]]":
        call = self._core.describe_transactions(transactional_ids, **kwargs)
        return self._each(transactional_ids, call)

    def abort_transaction(self, spec: AbortTransactionSpec, **kwargs: Any) -> "Future[None]":
        return self._one(self._core.abort_transaction(spec, **kwargs))

    def fence_producers(
        self, transactional_ids: list[str], **kwargs: Any
    ) -> "dict[str, Future[FencedProducer]]":
        call = self._core.fence_producers(transactional_ids, **kwargs)
        return self._each(transactional_ids, call)

    def complete_transactions(
        self, prepared: list[PreparedTransaction], committed: bool, **kwargs: Any
    ) -> "dict[PreparedTransaction, Future[None]]":
        call = self._core.complete_transactions(prepared, committed, **kwargs)
        return self._each(prepared, call)

    def fence_transactions(
        self, transactions: list[PreparedTransaction], **kwargs: Any
    ) -> "dict[PreparedTransaction, Future[None]]":
        call = self._core.fence_transactions(transactions, **kwargs)
        return self._each(transactions, call)

    # Features and the quorum

    def describe_features(self, **kwargs: Any) -> "Future[FeatureMetadata]":
        return self._one(self._core.describe_features(**kwargs))

    def update_features(
        self, feature_updates: dict[str, FeatureUpdate], **kwargs: Any
    ) -> "dict[str, Future[None]]":
        return self._each(feature_updates, self._core.update_features(feature_updates, **kwargs))

    def describe_metadata_quorum(self, **kwargs: Any) -> "Future[MetadataQuorum]":
        return self._one(self._core.describe_metadata_quorum(**kwargs))

    def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        endpoints: Iterable[RaftVoterEndpoint],
        **kwargs: Any,
    ) -> "Future[None]":
        call = self._core.add_raft_voter(voter_id, voter_directory_id, endpoints, **kwargs)
        return self._one(call)

    def remove_raft_voter(
        self, voter_id: int, voter_directory_id: Uuid, **kwargs: Any
    ) -> "Future[None]":
        return self._one(self._core.remove_raft_voter(voter_id, voter_directory_id, **kwargs))

    # Users and clients: quotas, access rules, passwords

    def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter, **kwargs: Any
    ) -> "Future[dict[ClientQuotaEntity, dict[str, float]]]":
        return self._one(self._core.describe_client_quotas(quota_filter, **kwargs))

    def alter_client_quotas(
        self, alterations: list[ClientQuotaAlteration], **kwargs: Any
    ) -> "dict[ClientQuotaEntity, Future[None]]":
        call = self._core.alter_client_quotas(alterations, **kwargs)
        return self._each((each.entity for each in alterations), call)

    def create_acls(
        self, acls: list[AclBinding], **kwargs: Any
    ) -> "dict[AclBinding, Future[None]]":
        return self._each(acls, self._core.create_acls(acls, **kwargs))

    def describe_acls(
        self, acl_binding_filter: AclBindingFilter, **kwargs: Any
    ) -> "Future[list[AclBinding]]":
        return self._one(self._core.describe_acls(acl_binding_filter, **kwargs))

    def delete_acls(
        self, acl_binding_filters: list[AclBindingFilter], **kwargs: Any
    ) -> "dict[AclBindingFilter, Future[list[AclBinding]]]":
        call = self._core.delete_acls(acl_binding_filters, **kwargs)
        return self._each(acl_binding_filters, call)

    def describe_user_scram_credentials(
        self, users: list[str] | None = None, **kwargs: Any
    ) -> "Future[_Credentials] | dict[str, Future[UserScramCredentialsDescription]]":
        call = self._core.describe_user_scram_credentials(users, **kwargs)
        return self._one(_all(call)) if users is None else self._each(users, call)

    def alter_user_scram_credentials(
        self, alterations: list[UserScramCredentialAlteration], **kwargs: Any
    ) -> "dict[str, Future[None]]":
        call = self._core.alter_user_scram_credentials(alterations, **kwargs)
        return self._each((each.user for each in alterations), call)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as somebody else, from the next connection on."""
        if not isinstance(username, str) or not isinstance(password, str):
            raise TypeError("username and password must be strings")
        self._thread.call(self._core.set_sasl_credentials, username, password)


_Credentials = dict[str, UserScramCredentialsDescription]


async def _all(call: Coroutine[Any, Any, Results[K, V]]) -> dict[K, V]:
    return (await call).all()
