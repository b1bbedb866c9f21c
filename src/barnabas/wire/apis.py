"""The APIs of the protocol: their keys, and the messages, versions and headers of each."""

import importlib
from enum import IntEnum
from functools import cached_property

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message, VersionRange


class ApiKey(IntEnum):
    """The number that names an API in a request header."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


class Api:
    """One API. Its messages are imported when they are first used."""

    def __init__(self, key: ApiKey) -> None:
        self.key = key
        self.name = "".join(word.capitalize() for word in key.name.split("_"))

    @cached_property
    def request(self) -> type[Message]:
        return self._message("Request")

    @cached_property
    def response(self) -> type[Message]:
        return self._message("Response")

    @cached_property
    def versions(self) -> VersionRange:
        return self.request.VERSIONS

    @cached_property
    def stable_versions(self) -> VersionRange:
        """The versions that are advertised unless `unstable.api.versions.enable` is set."""
        return self.request.STABLE_VERSIONS

    @cached_property
    def flexible_from(self) -> int | None:
        return self.request.FLEXIBLE_FROM

    @cached_property
    def listeners(self) -> tuple[str, ...]:
        """The listeners on which Kafka serves it: "broker", "controller" or both."""
        return self.request.LISTENERS

    def __repr__(self) -> str:
        return f"Api({self.name})"

    def _message(self, side: str) -> type[Message]:
        api_name = self.key.name.lower()
        module_name = f"barnabas.wire.messages.{_MODULES.get(api_name, api_name)}"
        message: type[Message] = getattr(importlib.import_module(module_name), self.name + side)
        return message


def api(key: int) -> Api:
    """Returns the API of a key. Raises UNSUPPORTED_VERSION for an unknown or retired one."""
    try:
        return _APIS[key]
    except KeyError:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"no API with key {key} is supported"
        ) from None


def apis() -> list[Api]:
    """Returns every API that has messages, ordered by key."""
    return list(_APIS.values())


def is_flexible(key: int, version: int) -> bool:
    """Whether a version has compact types and tagged fields; an unknown API never has."""
    known = _APIS.get(key)
    flexible_from = None if known is None else known.flexible_from
    return flexible_from is not None and version >= flexible_from


def request_header_version(key: int, version: int) -> int:
    """Returns 2 with tagged fields, 1 without."""
    return 2 if is_flexible(key, version) else 1


def response_header_version(key: int, version: int) -> int:
    """Returns 1 with tagged fields, 0 without.

    ApiVersions responses always have 0: the client may not know the broker's versions yet
    (KIP-511).
    """
    return 1 if key != _API_VERSIONS and is_flexible(key, version) else 0


_API_VERSIONS = int(ApiKey.API_VERSIONS)

_RETIRED = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
    }
)
"""Keys that Kafka 4 reserves but serves in no version."""

_APIS: dict[int, Api] = {int(key): Api(key) for key in ApiKey if key not in _RETIRED}

_MODULES = {
    api_name: module_name
    for module_name, api_names in {
        "acls": "describe_acls create_acls delete_acls",
        "delegation_tokens": (
            "create_delegation_token renew_delegation_token expire_delegation_token "
            "describe_delegation_token"
        ),
        "scram": "describe_user_scram_credentials alter_user_scram_credentials",
        "sasl": "sasl_handshake sasl_authenticate",
        "client_quotas": "describe_client_quotas alter_client_quotas",
        "raft_voters": "add_raft_voter remove_raft_voter update_raft_voter",
        "raft_elections": "vote begin_quorum_epoch end_quorum_epoch",
        "configs": (
            "describe_configs alter_configs incremental_alter_configs list_config_resources"
        ),
        "share_group_state": (
            "initialize_share_group_state read_share_group_state write_share_group_state "
            "delete_share_group_state read_share_group_state_summary"
        ),
        "share_group_offsets": (
            "describe_share_group_offsets alter_share_group_offsets delete_share_group_offsets"
        ),
        "share_fetch": "share_acknowledge",
        "transactions": "add_partitions_to_txn add_offsets_to_txn end_txn",
        "producer_ids": "init_producer_id allocate_producer_ids",
        "group_offsets": "offset_commit txn_offset_commit offset_fetch offset_delete",
        "transaction_descriptions": "describe_transactions list_transactions describe_producers",
        "transaction_markers": "write_txn_markers",
        "classic_groups": "join_group sync_group heartbeat leave_group",
        "groups": "describe_groups list_groups delete_groups",
        "consumer_groups": "consumer_group_heartbeat consumer_group_describe",
        "share_groups": "share_group_heartbeat share_group_describe",
        "streams_groups": (
            "streams_group_heartbeat streams_group_describe "
            "streams_group_topology_description_update"
        ),
        "registrations": (
            "broker_registration broker_heartbeat unregister_broker controller_registration "
            "unregister_controller"
        ),
        "partition_reassignments": "alter_partition_reassignments list_partition_reassignments",
        "log_dirs": "describe_log_dirs alter_replica_log_dirs",
        "topics": "create_topics delete_topics create_partitions delete_records",
        "telemetry": "get_telemetry_subscriptions push_telemetry",
        "metadata": "describe_topic_partitions describe_cluster",
    }.items()
    for api_name in api_names.split()
}
"""The module of each API that is declared together with others; any other has its own name."""
