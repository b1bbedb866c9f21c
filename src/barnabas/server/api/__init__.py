"""The APIs that a broker's listeners serve.

An API has its own module, unless its handler is one call of a coordinator or of the controller.
"""

from barnabas.server.handlers import ApiHandlers
from barnabas.wire.apis import ApiKey

HANDLERS = ApiHandlers(
    __name__,
    {
        ApiKey.PRODUCE: "produce",
        ApiKey.FETCH: "fetch",
        ApiKey.LIST_OFFSETS: "list_offsets",
        ApiKey.METADATA: "metadata",
        ApiKey.OFFSET_COMMIT: "groups.commit_offsets",
        ApiKey.OFFSET_FETCH: "offset_fetch",
        ApiKey.FIND_COORDINATOR: "find_coordinator",
        ApiKey.JOIN_GROUP: "groups.join",
        ApiKey.HEARTBEAT: "groups.heartbeat",
        ApiKey.LEAVE_GROUP: "groups.leave",
        ApiKey.SYNC_GROUP: "groups.sync",
        ApiKey.DESCRIBE_GROUPS: "groups.describe",
        ApiKey.LIST_GROUPS: "groups.list_groups",
        ApiKey.API_VERSIONS: "api_versions",
        ApiKey.CREATE_TOPICS: "forwarded",
        ApiKey.DELETE_TOPICS: "forwarded",
        ApiKey.DELETE_RECORDS: "delete_records",
        ApiKey.INIT_PRODUCER_ID: "transactions.init_producer_id",
        ApiKey.OFFSET_FOR_LEADER_EPOCH: "offset_for_leader_epoch",
        ApiKey.ADD_PARTITIONS_TO_TXN: "transactions.add_partitions",
        ApiKey.ADD_OFFSETS_TO_TXN: "transactions.add_offsets",
        ApiKey.END_TXN: "transactions.end",
        ApiKey.WRITE_TXN_MARKERS: "write_txn_markers",
        ApiKey.TXN_OFFSET_COMMIT: "txn_offset_commit",
        ApiKey.DESCRIBE_CONFIGS: "describe_configs",
        ApiKey.ALTER_CONFIGS: "alter_configs",
        ApiKey.ALTER_REPLICA_LOG_DIRS: "log_dirs.handle_alter",
        ApiKey.DESCRIBE_LOG_DIRS: "log_dirs.handle_describe",
        ApiKey.CREATE_PARTITIONS: "forwarded",
        ApiKey.DELETE_GROUPS: "groups.delete",
        ApiKey.ELECT_LEADERS: "forwarded",
        ApiKey.INCREMENTAL_ALTER_CONFIGS: "alter_configs.handle_incremental",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: "forwarded",
        ApiKey.LIST_PARTITION_REASSIGNMENTS: "forwarded",
        ApiKey.OFFSET_DELETE: "groups.delete_offsets",
        ApiKey.DESCRIBE_QUORUM: "forwarded",
        ApiKey.UPDATE_FEATURES: "forwarded",
        ApiKey.DESCRIBE_CLUSTER: "describe_cluster",
        ApiKey.DESCRIBE_PRODUCERS: "describe_producers",
        ApiKey.UNREGISTER_BROKER: "forwarded",
        ApiKey.DESCRIBE_TRANSACTIONS: "transactions.describe",
        ApiKey.LIST_TRANSACTIONS: "transactions.list_transactions",
        ApiKey.CONSUMER_GROUP_HEARTBEAT: "groups.consumer_heartbeat",
        ApiKey.CONSUMER_GROUP_DESCRIBE: "groups.describe_consumer_groups",
        ApiKey.LIST_CONFIG_RESOURCES: "list_config_resources",
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: "describe_topic_partitions",
        ApiKey.ADD_RAFT_VOTER: "forwarded",
        ApiKey.REMOVE_RAFT_VOTER: "forwarded",
    },
)
"""Handlers by API key."""
