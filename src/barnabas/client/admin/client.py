"""`AdminClient`: the calls of `AioAdminClient` for programs without an event loop, as futures."""

import warnings
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.client.admin.acls import AclBinding, AclBindingFilter
from barnabas.client.admin.cluster import DescribeClusterResult
from barnabas.client.admin.configs import ConfigEntry, ConfigResource
from barnabas.client.admin.enums import (
    ConsumerGroupState,
    ConsumerGroupType,
    ElectionType,
    IsolationLevel,
    ResourceType,
)
from barnabas.client.admin.features import FeatureMetadata, FeatureUpdate
from barnabas.client.admin.group_descriptions import (
    ConsumerGroupDescription,
    ListConsumerGroupsResult,
)
from barnabas.client.admin.group_metadata import GroupListing, GroupMetadata
from barnabas.client.admin.log_dirs import (
    LogDirDescription,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from barnabas.client.admin.metadata import ClusterMetadata
from barnabas.client.admin.model import ConsumerGroupTopicPartitions, Node, TopicCollection, Uuid
from barnabas.client.admin.offsets import ListOffsetsResultInfo, OffsetSpec
from barnabas.client.admin.partitions import NewPartitions
from barnabas.client.admin.producers import ProducerState
from barnabas.client.admin.quorum import MetadataQuorum, RaftVoterEndpoint
from barnabas.client.admin.quotas import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
)
from barnabas.client.admin.reassignments import PartitionReassignment
from barnabas.client.admin.records import DeletedRecords
from barnabas.client.admin.results import Results
from barnabas.client.admin.runner import AdminRunner
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
    TransactionState,
)
from barnabas.client.admin.validation import UNSET
from barnabas.client.errors import KafkaError
from barnabas.client.settings import admin_settings
from barnabas.client.values import PreparedTransaction, TopicPartition
from barnabas.wire.messages.api_versions import ApiVersion

K = TypeVar("K")
V = TypeVar("V")
UserScramCredentials = dict[str, UserScramCredentialsDescription]


class AdminClient:
    """An admin client for any thread, with the surface of `confluent_kafka.admin.AdminClient`.

        admin = AdminClient({"bootstrap.servers": "localhost:9092"})
        for topic, future in admin.create_topics([NewTopic("orders", 6)]).items():
            future.result()  # raises KafkaException if the topic was not created

    A call about several items returns a dict with a future for each item, any other call one
    future. Wrong arguments raise at once; what brokers report raises from `Future.result()`.

    `request_timeout` is the time in seconds that the whole call may take, with its retries
    (default: `default.api.timeout.ms`). `operation_timeout` is the time that brokers may take to
    apply a change to the whole cluster (default: what is left of the request timeout).
    """

    def __init__(self, conf: dict[str, Any], **kwargs: Any) -> None:
        if not isinstance(conf, dict):
            raise TypeError("expected configuration dict")
        self._runner = AdminRunner(admin_settings(conf | kwargs))
        self._admin = self._runner.admin

    def close(self) -> None:
        """Closes the connections; futures that are not done fail.

        A client that is no longer referenced closes when its last call is done.
        """
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._runner.errors)

    def poll(self, timeout: float = UNSET) -> int:
        """Calls `error_cb` with connection errors, and returns how often it was called.

        Waits up to `timeout` seconds for the first error (-1: as long as it takes). Futures
        complete without it.
        """
        return self._runner.errors.serve(timeout)

    # The cluster

    def list_topics(self, topic: str | None = None, timeout: float = UNSET) -> ClusterMetadata:
        """Returns the brokers of the cluster with one topic, or with all topics.

        A topic that does not exist is listed with its `error`. The call waits as long as it takes
        unless `timeout` (in seconds) is given.
        """
        return self._runner.run(self._admin.list_topics(topic, timeout))

    def cluster_id(self, timeout: float = UNSET) -> str | None:
        """Returns the id that the cluster was formatted with."""
        return self._runner.run(self._admin.cluster_id(timeout))

    def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        request_timeout: float = UNSET,
    ) -> Future[DescribeClusterResult]:
        """Returns the brokers, or with `bootstrap.controllers` the controllers, of the cluster.

        `include_fenced_brokers` adds brokers that are registered but not in service.
        """
        return self._runner.future(
            self._admin.describe_cluster(
                include_authorized_operations=include_authorized_operations,
                include_fenced_brokers=include_fenced_brokers,
                request_timeout=request_timeout,
            )
        )

    def describe_api_versions(
        self, *, request_timeout: float = UNSET
    ) -> Future[Results[Node, list[ApiVersion]]]:
        """Returns the APIs that each broker serves, with their version ranges, by broker."""
        return self._runner.future(
            self._admin.describe_api_versions(request_timeout=request_timeout)
        )

    def unregister_broker(self, broker_id: int, *, request_timeout: float = UNSET) -> Future[None]:
        """Removes the registration of a broker that is shut down and will not come back."""
        return self._runner.future(
            self._admin.unregister_broker(broker_id, request_timeout=request_timeout)
        )

    # Topics and partitions

    def create_topics(
        self,
        new_topics: list[NewTopic],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> dict[str, Future[None]]:
        """Creates topics; results are by topic name.

        `validate_only` checks the request without creating anything. `operation_timeout` limits how
        long the controller may take to create the topics.
        """
        call = self._admin.create_topics(
            new_topics,
            validate_only=validate_only,
            request_timeout=request_timeout,
            operation_timeout=operation_timeout,
        )
        return self._runner.futures((topic.topic for topic in new_topics), call)

    def delete_topics(
        self, topics: list[str], *, request_timeout: float = UNSET, operation_timeout: float = UNSET
    ) -> dict[str, Future[None]]:
        """Deletes topics with all their records; results are by topic name."""
        call = self._admin.delete_topics(
            topics, request_timeout=request_timeout, operation_timeout=operation_timeout
        )
        return self._runner.futures(topics, call)

    def describe_topics(
        self,
        topics: TopicCollection,
        *,
        include_authorized_operations: bool = False,
        request_timeout: float = UNSET,
    ) -> dict[str, Future[TopicDescription]]:
        """Returns partitions, leaders, replicas and ids of topics, by topic name.

        `include_authorized_operations` adds the operations that this client may do on each topic.
        """
        call = self._admin.describe_topics(
            topics,
            include_authorized_operations=include_authorized_operations,
            request_timeout=request_timeout,
        )
        return self._runner.futures(topics.topic_names, call)

    def create_partitions(
        self,
        new_partitions: list[NewPartitions],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> dict[str, Future[None]]:
        """Adds partitions to existing topics; results are by topic name.

        Records with the same key may go to another partition from then on. `validate_only` checks
        the request without adding anything.
        """
        call = self._admin.create_partitions(
            new_partitions,
            validate_only=validate_only,
            request_timeout=request_timeout,
            operation_timeout=operation_timeout,
        )
        return self._runner.futures((new.topic for new in new_partitions), call)

    def list_offsets(
        self,
        topic_partition_offsets: dict[TopicPartition, OffsetSpec],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        request_timeout: float = UNSET,
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
        """Returns one offset of each partition, by partition.

        `OffsetSpec` says which: the earliest, the latest, or the first at or after a timestamp.
        With READ_COMMITTED the latest offset is the last stable offset.
        """
        call = self._admin.list_offsets(
            topic_partition_offsets,
            isolation_level=isolation_level,
            request_timeout=request_timeout,
        )
        keys = (
            TopicPartition(partition.topic, partition.partition, spec._value)
            for partition, spec in topic_partition_offsets.items()
        )
        return self._runner.futures(keys, call)

    def delete_records(
        self,
        topic_partition_offsets: list[TopicPartition],
        *,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> dict[TopicPartition, Future[DeletedRecords]]:
        """Deletes all records before the offset of each partition; results are by partition.

        OFFSET_END deletes every record that the partition has.
        """
        call = self._admin.delete_records(
            topic_partition_offsets,
            request_timeout=request_timeout,
            operation_timeout=operation_timeout,
        )
        return self._runner.futures(topic_partition_offsets, call)

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: list[TopicPartition] | None = None,
        *,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Future[dict[TopicPartition, KafkaError | None]]:
        """Elects the leaders of these partitions, or of all partitions that need an election.

        The result has the error of each partition: ELECTION_NOT_NEEDED if its leader is the right
        one already.
        """
        return self._runner.future(
            self._admin.elect_leaders(
                election_type,
                partitions,
                request_timeout=request_timeout,
                operation_timeout=operation_timeout,
            )
        )

    def alter_partition_reassignments(
        self,
        reassignments: dict[TopicPartition, list[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> dict[TopicPartition, Future[None]]:
        """Moves partitions to other brokers; results are by partition.

        The value is the list of replicas, the preferred leader first; None cancels a reassignment
        that is in progress.
        """
        call = self._admin.alter_partition_reassignments(
            reassignments,
            allow_replication_factor_change=allow_replication_factor_change,
            request_timeout=request_timeout,
            operation_timeout=operation_timeout,
        )
        return self._runner.futures(reassignments, call)

    def list_partition_reassignments(
        self,
        partitions: list[TopicPartition] | None = None,
        *,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Future[dict[TopicPartition, PartitionReassignment]]:
        """Returns the reassignments in progress of these partitions, or of all partitions."""
        return self._runner.future(
            self._admin.list_partition_reassignments(
                partitions, request_timeout=request_timeout, operation_timeout=operation_timeout
            )
        )

    def describe_producers(
        self,
        partitions: list[TopicPartition],
        *,
        broker_id: int | None = None,
        request_timeout: float = UNSET,
    ) -> dict[TopicPartition, Future[list[ProducerState]]]:
        """Returns the active producers of partitions, by partition.

        Leaders report them, unless `broker_id` names another replica.
        """
        call = self._admin.describe_producers(
            partitions, broker_id=broker_id, request_timeout=request_timeout
        )
        return self._runner.futures(partitions, call)

    # Configs

    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float = UNSET, broker: int = -1
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]:
        """Returns all configs of resources, by resource: a dict of `ConfigEntry` by name.

        The configs of a broker are requested from that broker itself, unless `broker` names
        another.
        """
        call = self._admin.describe_configs(
            resources, request_timeout=request_timeout, broker=broker
        )
        return self._runner.futures(resources, call)

    def alter_configs(
        self,
        resources: list[ConfigResource],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        broker: int = -1,
    ) -> dict[ConfigResource, Future[None]]:
        """Replaces all configs of resources; results are by resource.

        A config that is not in `set_config` returns to its default, so use
        `incremental_alter_configs` unless you set all of them.
        """
        warnings.warn(
            "alter_configs replaces all configs: incremental_alter_configs is safer",
            DeprecationWarning,
            stacklevel=2,
        )
        call = self._admin.alter_configs(
            resources, validate_only=validate_only, request_timeout=request_timeout, broker=broker
        )
        return self._runner.futures(resources, call)

    def incremental_alter_configs(
        self,
        resources: list[ConfigResource],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        broker: int = -1,
    ) -> dict[ConfigResource, Future[None]]:
        """Sets, deletes, appends to or subtracts from single configs; results are by resource.

        The changes are the `incremental_configs` of each resource; other configs stay as they are.
        """
        call = self._admin.incremental_alter_configs(
            resources, validate_only=validate_only, request_timeout=request_timeout, broker=broker
        )
        return self._runner.futures(resources, call)

    def list_config_resources(
        self, types: Iterable[ResourceType | str | int] = (), *, request_timeout: float = UNSET
    ) -> Future[list[ConfigResource]]:
        """Returns the resources of these types, or of all types, that can have configs."""
        return self._runner.future(
            self._admin.list_config_resources(types, request_timeout=request_timeout)
        )

    # Groups

    def list_groups(self, group: str | None = None, timeout: float = UNSET) -> list[GroupMetadata]:
        """Returns one group, or all groups, with their members (deprecated).

        Use `list_consumer_groups` and `describe_consumer_groups`.
        """
        warnings.warn(
            "list_groups is deprecated: use list_consumer_groups and describe_consumer_groups",
            DeprecationWarning,
            stacklevel=2,
        )
        return self._runner.run(self._admin.list_groups(group, timeout))

    def list_group_listings(self, *, request_timeout: float = UNSET) -> Future[list[GroupListing]]:
        """Returns all groups of every type, without their members."""
        return self._runner.future(self._admin.list_group_listings(request_timeout=request_timeout))

    def list_consumer_groups(
        self,
        *,
        states: set[ConsumerGroupState] | None = None,
        types: set[ConsumerGroupType] | None = None,
        request_timeout: float = UNSET,
    ) -> Future[ListConsumerGroupsResult]:
        """Returns the consumer groups of all brokers.

        `states` and `types` restrict them. Brokers that failed are listed in `errors` of the
        result.
        """
        return self._runner.future(
            self._admin.list_consumer_groups(
                states=states, types=types, request_timeout=request_timeout
            )
        )

    def describe_consumer_groups(
        self,
        group_ids: list[str],
        *,
        include_authorized_operations: bool = False,
        request_timeout: float = UNSET,
    ) -> dict[str, Future[ConsumerGroupDescription]]:
        """Returns consumer groups of either protocol with their members, by group id.

        A group that does not exist has the state DEAD.
        """
        call = self._admin.describe_consumer_groups(
            group_ids,
            include_authorized_operations=include_authorized_operations,
            request_timeout=request_timeout,
        )
        return self._runner.futures(group_ids, call)

    def delete_consumer_groups(
        self, group_ids: list[str], *, request_timeout: float = UNSET
    ) -> dict[str, Future[None]]:
        """Deletes groups that have no members, with their offsets; results are by group id."""
        call = self._admin.delete_consumer_groups(group_ids, request_timeout=request_timeout)
        return self._runner.futures(group_ids, call)

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        group_instance_ids: list[str] | None = None,
        *,
        reason: str | None = None,
        request_timeout: float = UNSET,
    ) -> Future[Results[str, None]]:
        """Removes static members from a group, or all of its members if none is named.

        Results are by group instance id, or by member id for a member without one.
        """
        return self._runner.future(
            self._admin.remove_members_from_consumer_group(
                group_id, group_instance_ids, reason=reason, request_timeout=request_timeout
            )
        )

    def list_consumer_group_offsets(
        self,
        list_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        *,
        require_stable: bool = False,
        request_timeout: float = UNSET,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Returns the committed offsets of groups, by group id.

        A group without `topic_partitions` stands for all partitions with a committed offset. With
        `require_stable`, the call waits for offsets that a transaction has not committed yet.
        """
        call = self._admin.list_consumer_group_offsets(
            list_consumer_group_offsets_request,
            require_stable=require_stable,
            request_timeout=request_timeout,
        )
        return self._runner.futures(
            (group.group_id for group in list_consumer_group_offsets_request), call
        )

    def alter_consumer_group_offsets(
        self,
        alter_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        *,
        request_timeout: float = UNSET,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Commits offsets for groups that have no members, by group id.

        Each partition of the result has its own `error`.
        """
        call = self._admin.alter_consumer_group_offsets(
            alter_consumer_group_offsets_request, request_timeout=request_timeout
        )
        return self._runner.futures(
            (group.group_id for group in alter_consumer_group_offsets_request), call
        )

    def delete_consumer_group_offsets(
        self,
        delete_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        *,
        request_timeout: float = UNSET,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Deletes committed offsets of partitions that the group is not subscribed to.

        Results are by group id; each partition of a result has its own `error`.
        """
        call = self._admin.delete_consumer_group_offsets(
            delete_consumer_group_offsets_request, request_timeout=request_timeout
        )
        return self._runner.futures(
            (group.group_id for group in delete_consumer_group_offsets_request), call
        )

    # Log directories

    def describe_log_dirs(
        self, broker_ids: list[int], *, request_timeout: float = UNSET
    ) -> dict[int, Future[dict[str, LogDirDescription]]]:
        """Returns the log directories of brokers with their replicas, by broker id and path."""
        call = self._admin.describe_log_dirs(broker_ids, request_timeout=request_timeout)
        return self._runner.futures(broker_ids, call)

    def describe_replica_log_dirs(
        self, replicas: list[TopicPartitionReplica], *, request_timeout: float = UNSET
    ) -> dict[TopicPartitionReplica, Future[ReplicaLogDirInfo]]:
        """Returns the log directories that hold replicas, by replica."""
        call = self._admin.describe_replica_log_dirs(replicas, request_timeout=request_timeout)
        return self._runner.futures(replicas, call)

    def alter_replica_log_dirs(
        self,
        replica_assignment: dict[TopicPartitionReplica, str],
        *,
        request_timeout: float = UNSET,
    ) -> dict[TopicPartitionReplica, Future[None]]:
        """Moves replicas to other log directories of their brokers; results are by replica."""
        call = self._admin.alter_replica_log_dirs(
            replica_assignment, request_timeout=request_timeout
        )
        return self._runner.futures(replica_assignment, call)

    # Transactions

    def list_transactions(
        self,
        *,
        states: Iterable[TransactionState] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        transactional_id_pattern: str | None = None,
        request_timeout: float = UNSET,
    ) -> Future[Results[int, list[TransactionListing]]]:
        """Returns the transactions that each broker coordinates, by broker id.

        They can be restricted to states, to producer ids, to those open for longer than
        `duration_ms`, and to ids that match a pattern (RE2).
        """
        return self._runner.future(
            self._admin.list_transactions(
                states=states,
                producer_ids=producer_ids,
                duration_ms=duration_ms,
                transactional_id_pattern=transactional_id_pattern,
                request_timeout=request_timeout,
            )
        )

    def describe_transactions(
        self, transactional_ids: list[str], *, request_timeout: float = UNSET
    ) -> dict[str, Future[TransactionDescription]]:
        """Returns state, producer and partitions of transactions, by transactional id."""
        call = self._admin.describe_transactions(transactional_ids, request_timeout=request_timeout)
        return self._runner.futures(transactional_ids, call)

    def abort_transaction(
        self, spec: AbortTransactionSpec, *, request_timeout: float = UNSET
    ) -> Future[None]:
        """Aborts a hanging transaction in one partition.

        It is for transactions whose coordinator has no record of them: `describe_producers` has all
        that the spec needs.
        """
        return self._runner.future(
            self._admin.abort_transaction(spec, request_timeout=request_timeout)
        )

    def fence_producers(
        self, transactional_ids: list[str], *, request_timeout: float = UNSET
    ) -> dict[str, Future[FencedProducer]]:
        """Fences the producers that use these transactional ids; results are by id.

        Their open transactions are aborted.
        """
        call = self._admin.fence_producers(transactional_ids, request_timeout=request_timeout)
        return self._runner.futures(transactional_ids, call)

    def complete_transactions(
        self,
        prepared: list[PreparedTransaction],
        committed: bool,
        *,
        request_timeout: float = UNSET,
    ) -> dict[PreparedTransaction, Future[None]]:
        """Commits, or aborts, prepared transactions; results are by transaction.

        A transaction may have been completed before. The error is INVALID_TXN_STATE for one that
        was aborted and cannot be committed any more, and TRANSACTIONAL_ID_NOT_FOUND if its outcome
        cannot be found out because its id has expired or was used again.
        """
        call = self._admin.complete_transactions(
            prepared, committed, request_timeout=request_timeout
        )
        return self._runner.futures(prepared, call)

    def fence_transactions(
        self, transactions: list[PreparedTransaction], *, request_timeout: float = UNSET
    ) -> dict[PreparedTransaction, Future[None]]:
        """Aborts open transactions and fences their producers; results are by transaction.

        With transaction version 2 a transaction that has ended keeps its outcome. Before that
        version the outcome cannot be found out afterwards.
        """
        call = self._admin.fence_transactions(transactions, request_timeout=request_timeout)
        return self._runner.futures(transactions, call)

    # Features and the metadata quorum

    def describe_features(
        self, *, node_id: int | None = None, request_timeout: float = UNSET
    ) -> Future[FeatureMetadata]:
        """Returns the finalized features of the cluster and those that brokers support.

        `node_id` selects the node to request them from.
        """
        return self._runner.future(
            self._admin.describe_features(node_id=node_id, request_timeout=request_timeout)
        )

    def update_features(
        self,
        feature_updates: dict[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> dict[str, Future[None]]:
        """Changes the finalized levels of features, all or none; results are by feature."""
        call = self._admin.update_features(
            feature_updates,
            validate_only=validate_only,
            request_timeout=request_timeout,
            operation_timeout=operation_timeout,
        )
        return self._runner.futures(feature_updates, call)

    def describe_metadata_quorum(self, *, request_timeout: float = UNSET) -> Future[MetadataQuorum]:
        """Returns leader, voters and observers of the metadata log, as the leader reports them."""
        return self._runner.future(
            self._admin.describe_metadata_quorum(request_timeout=request_timeout)
        )

    def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        endpoints: Iterable[RaftVoterEndpoint],
        *,
        cluster_id: str | None = None,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Future[None]:
        """Adds a controller that replicates the metadata log to the voters."""
        return self._runner.future(
            self._admin.add_raft_voter(
                voter_id,
                voter_directory_id,
                endpoints,
                cluster_id=cluster_id,
                request_timeout=request_timeout,
                operation_timeout=operation_timeout,
            )
        )

    def remove_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: Uuid,
        *,
        cluster_id: str | None = None,
        request_timeout: float = UNSET,
    ) -> Future[None]:
        """Removes a controller from the voters of the metadata log."""
        return self._runner.future(
            self._admin.remove_raft_voter(
                voter_id, voter_directory_id, cluster_id=cluster_id, request_timeout=request_timeout
            )
        )

    # Quotas, ACLs and credentials

    def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter, *, request_timeout: float = UNSET
    ) -> Future[dict[ClientQuotaEntity, dict[str, float]]]:
        """Returns the quotas of all entities that match the filter, by entity."""
        return self._runner.future(
            self._admin.describe_client_quotas(quota_filter, request_timeout=request_timeout)
        )

    def alter_client_quotas(
        self,
        alterations: list[ClientQuotaAlteration],
        *,
        validate_only: bool = False,
        request_timeout: float = UNSET,
    ) -> dict[ClientQuotaEntity, Future[None]]:
        """Sets or removes quotas; results are by entity."""
        call = self._admin.alter_client_quotas(
            alterations, validate_only=validate_only, request_timeout=request_timeout
        )
        return self._runner.futures((alteration.entity for alteration in alterations), call)

    def create_acls(
        self, acls: list[AclBinding], *, request_timeout: float = UNSET
    ) -> dict[AclBinding, Future[None]]:
        """Creates ACLs; results are by binding."""
        call = self._admin.create_acls(acls, request_timeout=request_timeout)
        return self._runner.futures(acls, call)

    def describe_acls(
        self, acl_binding_filter: AclBindingFilter, *, request_timeout: float = UNSET
    ) -> Future[list[AclBinding]]:
        """Returns the ACLs that match a filter."""
        return self._runner.future(
            self._admin.describe_acls(acl_binding_filter, request_timeout=request_timeout)
        )

    def delete_acls(
        self, acl_binding_filters: list[AclBindingFilter], *, request_timeout: float = UNSET
    ) -> dict[AclBindingFilter, Future[list[AclBinding]]]:
        """Deletes the ACLs that match filters, and returns the deleted ACLs by filter."""
        call = self._admin.delete_acls(acl_binding_filters, request_timeout=request_timeout)
        return self._runner.futures(acl_binding_filters, call)

    def describe_user_scram_credentials(
        self, users: list[str] | None = None, *, request_timeout: float = UNSET
    ) -> Future[UserScramCredentials] | dict[str, Future[UserScramCredentialsDescription]]:
        """Returns mechanisms and iterations of users' credentials, by user; never passwords.

        Without `users`, all users with credentials are described.
        """
        call = self._admin.describe_user_scram_credentials(users, request_timeout=request_timeout)
        if users is None:
            return self._runner.future(_all(call))
        return self._runner.futures(users, call)

    def alter_user_scram_credentials(
        self, alterations: list[UserScramCredentialAlteration], *, request_timeout: float = UNSET
    ) -> dict[str, Future[None]]:
        """Sets and deletes credentials; results are by user.

        Passwords are salted and hashed in this process, and are not sent.
        """
        call = self._admin.alter_user_scram_credentials(
            alterations, request_timeout=request_timeout
        )
        return self._runner.futures((alteration.user for alteration in alterations), call)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Uses these credentials for connections opened from now on."""
        if not isinstance(username, str) or not isinstance(password, str):
            raise TypeError("username and password must be strings")
        self._runner.thread.call(self._admin.set_sasl_credentials, username, password)


async def _all(call: Coroutine[Any, Any, Results[K, V]]) -> dict[K, V]:
    return (await call).all()
