"""`AioAdminClient`: every admin call as a coroutine, on the caller's event loop.

Each subject has a module with its values and its calls. A call is a function whose first
parameter is the `AdminRequests` of a client: its signature and docstring are those of the method.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from barnabas.client.admin import (
    acls,
    cluster,
    configs,
    delegation_tokens,
    group_offsets,
    groups,
    log_dirs,
    metadata,
    offsets,
    partitions,
    quotas,
    scram,
    topics,
    transactions,
)
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.cluster.cluster import ClusterClient, ignore_error
from barnabas.client.errors import KafkaError
from barnabas.client.methods import documented
from barnabas.client.settings import AdminSettings, admin_settings

P = ParamSpec("P")
V = TypeVar("V")


def method(
    call: Callable[Concatenate[AdminRequests, P], V],
) -> "Callable[Concatenate[AioAdminClient, P], V]":
    """Returns the method of `AioAdminClient` that makes this call."""

    def bound(self: "AioAdminClient", /, *args: P.args, **kwargs: P.kwargs) -> V:
        return call(self._requests, *args, **kwargs)

    return documented(bound, call)


class AioAdminClient:
    """An admin client on the running event loop.

    A call about several items returns `Results` with the outcome of each item. Timeouts are those
    of `AdminClient`.
    """

    def __init__(
        self,
        conf: Mapping[str, Any] | AdminSettings,
        on_error: Callable[[KafkaError], None] | None = None,
    ) -> None:
        settings = conf if isinstance(conf, AdminSettings) else admin_settings(dict(conf))
        self._cluster = ClusterClient(
            settings,
            on_error or settings.error_cb or ignore_error,
            controllers=settings.bootstrap_controllers,
        )
        self._requests = AdminRequests(self._cluster, settings)

    # The cluster

    list_topics = method(metadata.list_topics)
    cluster_id = method(metadata.cluster_id)
    describe_cluster = method(cluster.describe_cluster)
    describe_api_versions = method(cluster.describe_api_versions)
    unregister_broker = method(cluster.unregister_broker)

    # Topics and partitions

    create_topics = method(topics.create_topics)
    delete_topics = method(topics.delete_topics)
    describe_topics = method(topics.describe_topics)
    create_partitions = method(topics.create_partitions)
    list_offsets = method(offsets.list_offsets)
    delete_records = method(offsets.delete_records)
    elect_leaders = method(partitions.elect_leaders)
    alter_partition_reassignments = method(partitions.alter_partition_reassignments)
    list_partition_reassignments = method(partitions.list_partition_reassignments)
    describe_producers = method(partitions.describe_producers)

    # Configs

    describe_configs = method(configs.describe_configs)
    alter_configs = method(configs.alter_configs)
    incremental_alter_configs = method(configs.incremental_alter_configs)
    list_config_resources = method(configs.list_config_resources)

    # Groups

    list_groups = method(groups.list_groups)
    list_group_listings = method(groups.list_group_listings)
    list_consumer_groups = method(groups.list_consumer_groups)
    describe_consumer_groups = method(groups.describe_consumer_groups)
    delete_consumer_groups = method(groups.delete_consumer_groups)
    remove_members_from_consumer_group = method(groups.remove_members_from_consumer_group)
    list_consumer_group_offsets = method(group_offsets.list_consumer_group_offsets)
    alter_consumer_group_offsets = method(group_offsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = method(group_offsets.delete_consumer_group_offsets)

    # Log directories

    describe_log_dirs = method(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = method(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = method(log_dirs.alter_replica_log_dirs)

    # Transactions

    list_transactions = method(transactions.list_transactions)
    describe_transactions = method(transactions.describe_transactions)
    abort_transaction = method(transactions.abort_transaction)
    fence_producers = method(transactions.fence_producers)
    complete_transactions = method(transactions.complete_transactions)
    fence_transactions = method(transactions.fence_transactions)

    # Features and the metadata quorum

    describe_features = method(cluster.describe_features)
    update_features = method(cluster.update_features)
    describe_metadata_quorum = method(cluster.describe_metadata_quorum)
    add_raft_voter = method(cluster.add_raft_voter)
    remove_raft_voter = method(cluster.remove_raft_voter)

    # Quotas, ACLs and credentials

    describe_client_quotas = method(quotas.describe_client_quotas)
    alter_client_quotas = method(quotas.alter_client_quotas)
    create_acls = method(acls.create_acls)
    describe_acls = method(acls.describe_acls)
    delete_acls = method(acls.delete_acls)
    describe_user_scram_credentials = method(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = method(scram.alter_user_scram_credentials)
    create_delegation_token = method(delegation_tokens.create_delegation_token)
    renew_delegation_token = method(delegation_tokens.renew_delegation_token)
    expire_delegation_token = method(delegation_tokens.expire_delegation_token)
    describe_delegation_token = method(delegation_tokens.describe_delegation_token)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Uses these credentials for connections opened from now on."""
        self._cluster.set_sasl_credentials(username, password)

    async def close(self) -> None:
        """Closes the connections; calls in progress fail."""
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
