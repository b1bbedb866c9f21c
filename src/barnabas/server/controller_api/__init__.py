"""The APIs that a controller's listener serves, to controllers, brokers and tools."""

from barnabas.server.handlers import ApiHandlers
from barnabas.wire.apis import ApiKey

HANDLERS = ApiHandlers(
    __name__,
    {
        ApiKey.FETCH: "quorum_requests",
        ApiKey.API_VERSIONS: "descriptions.api_versions",
        ApiKey.CREATE_TOPICS: "topics.create_topics",
        ApiKey.DELETE_TOPICS: "topics.delete_topics",
        ApiKey.DESCRIBE_ACLS: "acls.describe_acls",
        ApiKey.CREATE_ACLS: "acls.change_acls",
        ApiKey.DELETE_ACLS: "acls.change_acls",
        ApiKey.DESCRIBE_CONFIGS: "configs.describe_configs",
        ApiKey.ALTER_CONFIGS: "configs.alter_configs",
        ApiKey.CREATE_PARTITIONS: "topics.create_partitions",
        ApiKey.CREATE_DELEGATION_TOKEN: "delegation_tokens.create",
        ApiKey.RENEW_DELEGATION_TOKEN: "delegation_tokens.change",
        ApiKey.EXPIRE_DELEGATION_TOKEN: "delegation_tokens.change",
        ApiKey.ELECT_LEADERS: "controller_requests",
        ApiKey.INCREMENTAL_ALTER_CONFIGS: "configs.incremental_alter_configs",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: "controller_requests",
        ApiKey.LIST_PARTITION_REASSIGNMENTS: "controller_requests",
        ApiKey.ALTER_CLIENT_QUOTAS: "controller_requests",
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "controller_requests",
        ApiKey.VOTE: "quorum_requests",
        ApiKey.BEGIN_QUORUM_EPOCH: "quorum_requests",
        ApiKey.END_QUORUM_EPOCH: "quorum_requests",
        ApiKey.DESCRIBE_QUORUM: "descriptions.describe_quorum",
        ApiKey.ALTER_PARTITION: "controller_requests",
        ApiKey.UPDATE_FEATURES: "controller_requests",
        ApiKey.ENVELOPE: "envelope",
        ApiKey.FETCH_SNAPSHOT: "quorum_requests",
        ApiKey.DESCRIBE_CLUSTER: "descriptions.describe_cluster",
        ApiKey.BROKER_REGISTRATION: "controller_requests",
        ApiKey.BROKER_HEARTBEAT: "controller_requests",
        ApiKey.UNREGISTER_BROKER: "controller_requests",
        ApiKey.ALLOCATE_PRODUCER_IDS: "controller_requests",
        ApiKey.CONTROLLER_REGISTRATION: "controller_requests",
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: "controller_requests",
        ApiKey.ADD_RAFT_VOTER: "quorum_requests",
        ApiKey.REMOVE_RAFT_VOTER: "quorum_requests",
        ApiKey.UPDATE_RAFT_VOTER: "quorum_requests",
    },
)

FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""The APIs that a broker may forward for a client, in an Envelope."""
