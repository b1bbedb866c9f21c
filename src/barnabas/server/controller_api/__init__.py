"""What a controller's listener serves: other controllers, brokers, and tools that know of it.

One file for each API that is more than one question to the controller or to the quorum.
"""

from barnabas.server.handlers import ApiHandlers
from barnabas.wire.apis import ApiKey

HANDLERS = ApiHandlers(
    __name__,
    {
        ApiKey.FETCH: "consensus",
        ApiKey.API_VERSIONS: "api_versions",
        ApiKey.CREATE_TOPICS: "decided",
        ApiKey.DELETE_TOPICS: "delete_topics",
        ApiKey.DESCRIBE_CONFIGS: "describe_configs",
        ApiKey.ALTER_CONFIGS: "decided",
        ApiKey.CREATE_PARTITIONS: "decided",
        ApiKey.ELECT_LEADERS: "decided",
        ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: "decided",
        ApiKey.LIST_PARTITION_REASSIGNMENTS: "decided",
        ApiKey.VOTE: "consensus",
        ApiKey.BEGIN_QUORUM_EPOCH: "consensus",
        ApiKey.END_QUORUM_EPOCH: "consensus",
        ApiKey.DESCRIBE_QUORUM: "describe_quorum",
        ApiKey.ALTER_PARTITION: "decided",
        ApiKey.UPDATE_FEATURES: "decided",
        ApiKey.ENVELOPE: "envelope",
        ApiKey.FETCH_SNAPSHOT: "consensus",
        ApiKey.DESCRIBE_CLUSTER: "describe_cluster",
        ApiKey.BROKER_REGISTRATION: "decided",
        ApiKey.BROKER_HEARTBEAT: "decided",
        ApiKey.UNREGISTER_BROKER: "decided",
        ApiKey.ALLOCATE_PRODUCER_IDS: "decided",
        ApiKey.CONTROLLER_REGISTRATION: "decided",
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: "decided",
        ApiKey.ADD_RAFT_VOTER: "consensus",
        ApiKey.REMOVE_RAFT_VOTER: "consensus",
        ApiKey.UPDATE_RAFT_VOTER: "consensus",
    },
)

FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""What a broker may pass on for a client, in an Envelope."""
