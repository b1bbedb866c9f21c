"""Every error code by the names that librdkafka and Kafka have for it, and what it means.

Codes from 0 up are the protocol's own, -1 is what a broker could not explain, and those below -100
are the client's: no broker has said them.
"""

from barnabas.wire.errors import ErrorCode


def error_name(code: int) -> str:
    """The constant's name, librdkafka's where the two differ."""
    return _NAMES.get(code, f"ERR_{code}?")


def error_text(code: int) -> str:
    """What it means, in a sentence for people."""
    if code not in _NAMES:
        return f"Unknown error {code}"
    if code == ErrorCodes.NO_ERROR:
        return "Success"
    if code in _LOCAL:
        return f"Local: {_LOCAL[code]}"
    words = ErrorCode.of(code).name.replace("_", " ").capitalize()
    return f"Broker: {_BROKER.get(code, words)}"


class ErrorCodes:
    """The constants of KafkaError."""

    __slots__ = ()

    _BAD_MSG = -199
    _BAD_COMPRESSION = -198
    _DESTROY = -197
    _FAIL = -196
    _TRANSPORT = -195
    _CRIT_SYS_RESOURCE = -194
    _RESOLVE = -193
    _MSG_TIMED_OUT = -192
    _PARTITION_EOF = -191
    _UNKNOWN_PARTITION = -190
    _FS = -189
    _UNKNOWN_TOPIC = -188
    _ALL_BROKERS_DOWN = -187
    _INVALID_ARG = -186
    _TIMED_OUT = -185
    _QUEUE_FULL = -184
    _ISR_INSUFF = -183
    _NODE_UPDATE = -182
    _SSL = -181
    _WAIT_COORD = -180
    _UNKNOWN_GROUP = -179
    _IN_PROGRESS = -178
    _PREV_IN_PROGRESS = -177
    _EXISTING_SUBSCRIPTION = -176
    _ASSIGN_PARTITIONS = -175
    _REVOKE_PARTITIONS = -174
    _CONFLICT = -173
    _STATE = -172
    _UNKNOWN_PROTOCOL = -171
    _NOT_IMPLEMENTED = -170
    _AUTHENTICATION = -169
    _NO_OFFSET = -168
    _OUTDATED = -167
    _TIMED_OUT_QUEUE = -166
    _UNSUPPORTED_FEATURE = -165
    _WAIT_CACHE = -164
    _INTR = -163
    _KEY_SERIALIZATION = -162
    _VALUE_SERIALIZATION = -161
    _KEY_DESERIALIZATION = -160
    _VALUE_DESERIALIZATION = -159
    _PARTIAL = -158
    _READ_ONLY = -157
    _NOENT = -156
    _UNDERFLOW = -155
    _INVALID_TYPE = -154
    _RETRY = -153
    _PURGE_QUEUE = -152
    _PURGE_INFLIGHT = -151
    _FATAL = -150
    _INCONSISTENT = -149
    _GAPLESS_GUARANTEE = -148
    _MAX_POLL_EXCEEDED = -147
    _UNKNOWN_BROKER = -146
    _NOT_CONFIGURED = -145
    _FENCED = -144
    _APPLICATION = -143
    _ASSIGNMENT_LOST = -142
    _NOOP = -141
    _AUTO_OFFSET_RESET = -140
    _LOG_TRUNCATION = -139
    _INVALID_DIFFERENT_RECORD = -138
    _DESTROY_BROKER = -137

    # What brokers say. Where librdkafka has a name of its own for it, that comes first.
    UNKNOWN = -1
    NO_ERROR = 0
    INVALID_MSG = 2
    UNKNOWN_TOPIC_OR_PART = 3
    INVALID_MSG_SIZE = 4
    NOT_LEADER_FOR_PARTITION = 6
    MSG_SIZE_TOO_LARGE = 10
    STALE_CTRL_EPOCH = 11
    TOPIC_EXCEPTION = 17
    UNKNOWN_SERVER_ERROR = -1
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136


_LOCAL = {
    ErrorCodes._BAD_MSG: "A message is not in a format that can be read",
    ErrorCodes._BAD_COMPRESSION: "Compressed records cannot be decompressed",
    ErrorCodes._DESTROY: "The client is closed or closing",
    ErrorCodes._FAIL: "The broker could not be talked to",
    ErrorCodes._TRANSPORT: "The connection to the broker is lost or cannot be made",
    ErrorCodes._CRIT_SYS_RESOURCE: "The system has run out of a resource",
    ErrorCodes._RESOLVE: "The host name cannot be resolved",
    ErrorCodes._MSG_TIMED_OUT: "The message was not delivered in time",
    ErrorCodes._PARTITION_EOF: "The end of the partition is reached",
    ErrorCodes._UNKNOWN_PARTITION: "The topic has no such partition",
    ErrorCodes._FS: "A file cannot be read or written",
    ErrorCodes._UNKNOWN_TOPIC: "There is no such topic",
    ErrorCodes._ALL_BROKERS_DOWN: "No broker can be reached",
    ErrorCodes._INVALID_ARG: "An argument or a setting is wrong",
    ErrorCodes._TIMED_OUT: "Timed out",
    ErrorCodes._QUEUE_FULL: "The queue is full",
    ErrorCodes._ISR_INSUFF: "Too few replicas are in sync",
    ErrorCodes._NODE_UPDATE: "A broker has changed its address",
    ErrorCodes._SSL: "TLS failed",
    ErrorCodes._WAIT_COORD: "Waiting for the coordinator",
    ErrorCodes._UNKNOWN_GROUP: "There is no such group",
    ErrorCodes._IN_PROGRESS: "It is being done already",
    ErrorCodes._PREV_IN_PROGRESS: "Something else has to end first",
    ErrorCodes._EXISTING_SUBSCRIPTION: "There is another subscription",
    ErrorCodes._ASSIGN_PARTITIONS: "Partitions are to be assigned",
    ErrorCodes._REVOKE_PARTITIONS: "Partitions are to be given back",
    ErrorCodes._CONFLICT: "Two uses exclude each other",
    ErrorCodes._STATE: "Not allowed in this state",
    ErrorCodes._UNKNOWN_PROTOCOL: "The protocol is not known",
    ErrorCodes._NOT_IMPLEMENTED: "Not implemented",
    ErrorCodes._AUTHENTICATION: "The broker does not accept who we say we are",
    ErrorCodes._NO_OFFSET: "There is no offset to commit",
    ErrorCodes._OUTDATED: "It is out of date",
    ErrorCodes._TIMED_OUT_QUEUE: "Timed out before it was sent",
    ErrorCodes._UNSUPPORTED_FEATURE: "The broker lacks what is needed for this",
    ErrorCodes._WAIT_CACHE: "Waiting for metadata",
    ErrorCodes._INTR: "Interrupted",
    ErrorCodes._KEY_SERIALIZATION: "The key cannot be serialized",
    ErrorCodes._VALUE_SERIALIZATION: "The value cannot be serialized",
    ErrorCodes._KEY_DESERIALIZATION: "The key cannot be deserialized",
    ErrorCodes._VALUE_DESERIALIZATION: "The value cannot be deserialized",
    ErrorCodes._PARTIAL: "The answer is not complete",
    ErrorCodes._READ_ONLY: "It cannot be changed",
    ErrorCodes._NOENT: "There is no such entry",
    ErrorCodes._UNDERFLOW: "The answer ends too early",
    ErrorCodes._INVALID_TYPE: "The type is wrong",
    ErrorCodes._RETRY: "Try again",
    ErrorCodes._PURGE_QUEUE: "Purged before it was sent",
    ErrorCodes._PURGE_INFLIGHT: "Purged while it was on its way",
    ErrorCodes._FATAL: "The client cannot go on",
    ErrorCodes._INCONSISTENT: "The state is not consistent",
    ErrorCodes._GAPLESS_GUARANTEE: "Going on would leave a gap in the order of messages",
    ErrorCodes._MAX_POLL_EXCEEDED: "poll() was not called within max.poll.interval.ms",
    ErrorCodes._UNKNOWN_BROKER: "There is no such broker",
    ErrorCodes._NOT_CONFIGURED: "The settings do not provide for this",
    ErrorCodes._FENCED: "A newer instance has taken over",
    ErrorCodes._APPLICATION: "The application says so",
    ErrorCodes._ASSIGNMENT_LOST: "The group has given our partitions to others",
    ErrorCodes._NOOP: "Nothing was done",
    ErrorCodes._AUTO_OFFSET_RESET: "There is no offset to start at, and none may be chosen",
    ErrorCodes._LOG_TRUNCATION: "The partition lost records that were read",
    ErrorCodes._INVALID_DIFFERENT_RECORD: "Another record of the same batch was refused",
    ErrorCodes._DESTROY_BROKER: "The connection to the broker is given up",
}

_BROKER = {
    ErrorCodes.UNKNOWN: "It failed, and the broker cannot say why",
    ErrorCodes.INVALID_MSG: "A record is damaged, or has no key where the topic needs one",
    ErrorCodes.UNKNOWN_TOPIC_OR_PART: "Unknown topic or partition",
    ErrorCodes.INVALID_MSG_SIZE: "The size to fetch is not valid",
    ErrorCodes.NOT_LEADER_FOR_PARTITION: "The broker does not lead this partition",
    ErrorCodes.BROKER_NOT_AVAILABLE: "The broker is not available",
    ErrorCodes.REPLICA_NOT_AVAILABLE: "The replica is not available",
    ErrorCodes.MSG_SIZE_TOO_LARGE: "The message is larger than the topic allows",
    ErrorCodes.NETWORK_EXCEPTION: "The broker lost a connection before it had an answer",
    ErrorCodes.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading",
    ErrorCodes.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available",
    ErrorCodes.NOT_COORDINATOR: "The broker is not the coordinator",
    ErrorCodes.TOPIC_EXCEPTION: "The topic's name is not allowed",
    ErrorCodes.RECORD_LIST_TOO_LARGE: "The batch is larger than a segment",
    ErrorCodes.NOT_ENOUGH_REPLICAS: "Too few replicas are in sync",
    ErrorCodes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "Too few replicas have the message",
    ErrorCodes.ILLEGAL_GENERATION: "The generation is not the group's",
    ErrorCodes.INCONSISTENT_GROUP_PROTOCOL: "The member's protocols do not fit the group's",
    ErrorCodes.UNKNOWN_MEMBER_ID: "The group does not know the member",
    ErrorCodes.REBALANCE_IN_PROGRESS: "The group is rebalancing",
    ErrorCodes.INVALID_COMMIT_OFFSET_SIZE: "The offsets to commit are too large",
    ErrorCodes.TOPIC_AUTHORIZATION_FAILED: "Not authorized for the topic",
    ErrorCodes.GROUP_AUTHORIZATION_FAILED: "Not authorized for the group",
    ErrorCodes.CLUSTER_AUTHORIZATION_FAILED: "Not authorized for the cluster",
    ErrorCodes.ILLEGAL_SASL_STATE: "The request does not fit this step of SASL",
    ErrorCodes.UNSUPPORTED_VERSION: "The broker does not have this version of the API",
    ErrorCodes.INVALID_CONFIG: "A setting is not valid",
    ErrorCodes.NOT_CONTROLLER: "The broker is not the controller",
    ErrorCodes.UNSUPPORTED_FOR_MESSAGE_FORMAT: "The message format of the topic has no room for it",
    ErrorCodes.POLICY_VIOLATION: "A policy of the broker forbids it",
    ErrorCodes.DUPLICATE_SEQUENCE_NUMBER: "The sequence number was used before",
    ErrorCodes.INVALID_PRODUCER_EPOCH: "The producer's epoch is old: another instance is active",
    ErrorCodes.INVALID_TXN_STATE: "The transaction is in another state",
    ErrorCodes.INVALID_PRODUCER_ID_MAPPING: "The producer id is not that of the transactional id",
    ErrorCodes.INVALID_TRANSACTION_TIMEOUT: "It is more than transaction.max.timeout.ms",
    ErrorCodes.CONCURRENT_TRANSACTIONS: "Another request of the same transaction is not done yet",
    ErrorCodes.TRANSACTION_COORDINATOR_FENCED: "The coordinator of the transaction has been replaced",
    ErrorCodes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Not authorized for the transactional id",
    ErrorCodes.SECURITY_DISABLED: "Security is disabled",
    ErrorCodes.OPERATION_NOT_ATTEMPTED: "It was not tried, as something before it failed",
    ErrorCodes.KAFKA_STORAGE_ERROR: "The broker's disk failed",
    ErrorCodes.LOG_DIR_NOT_FOUND: "The broker has no such log directory",
    ErrorCodes.SASL_AUTHENTICATION_FAILED: "Authentication failed",
    ErrorCodes.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation tokens are disabled",
    ErrorCodes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Not on this connection",
    ErrorCodes.INVALID_PRINCIPAL_TYPE: "The type of principal is not known",
    ErrorCodes.NON_EMPTY_GROUP: "The group is not empty",
    ErrorCodes.GROUP_ID_NOT_FOUND: "There is no such group",
    ErrorCodes.LISTENER_NOT_FOUND: "The leader has no listener of this name",
    ErrorCodes.TOPIC_DELETION_DISABLED: "Topics may not be deleted",
    ErrorCodes.FENCED_LEADER_EPOCH: "The leader epoch is older than the broker's",
    ErrorCodes.UNKNOWN_LEADER_EPOCH: "The leader epoch is newer than the broker's",
    ErrorCodes.STALE_BROKER_EPOCH: "The broker has started anew",
    ErrorCodes.OFFSET_NOT_AVAILABLE: "The new leader does not know its high watermark yet",
    ErrorCodes.MEMBER_ID_REQUIRED: "The member has to join with the id it is given",
    ErrorCodes.GROUP_MAX_SIZE_REACHED: "The group is full",
    ErrorCodes.FENCED_INSTANCE_ID: "Another member has the same group.instance.id",
    ErrorCodes.ELECTION_NOT_NEEDED: "The leader is the wanted one already",
    ErrorCodes.GROUP_SUBSCRIBED_TO_TOPIC: "The group is subscribed to the topic",
    ErrorCodes.INVALID_RECORD: "A record is not valid",
    ErrorCodes.UNSTABLE_OFFSET_COMMIT: "Transactions that are not done hold up the offsets",
    ErrorCodes.THROTTLING_QUOTA_EXCEEDED: "The quota is used up",
    ErrorCodes.PRODUCER_FENCED: "Another producer with this transactional id is active",
    ErrorCodes.RESOURCE_NOT_FOUND: "There is no such resource",
    ErrorCodes.DUPLICATE_RESOURCE: "A resource is named twice",
    ErrorCodes.UNACCEPTABLE_CREDENTIAL: "The credential is not acceptable",
    ErrorCodes.UNKNOWN_TOPIC_ID: "Unknown topic id",
    ErrorCodes.INCONSISTENT_TOPIC_ID: "The topic id is not the one of the log",
    ErrorCodes.FENCED_MEMBER_EPOCH: "The member's epoch is fenced",
    ErrorCodes.UNRELEASED_INSTANCE_ID: "The group.instance.id is in use",
    ErrorCodes.UNSUPPORTED_ASSIGNOR: "The broker has no such assignor",
    ErrorCodes.MISMATCHED_ENDPOINT_TYPE: "The request belongs to another kind of endpoint",
    ErrorCodes.UNKNOWN_SUBSCRIPTION_ID: "The subscription of metrics is out of date",
    ErrorCodes.TELEMETRY_TOO_LARGE: "The metrics are too large",
    ErrorCodes.TRANSACTION_ABORTABLE: "The transaction has to be aborted",
    ErrorCodes.INVALID_REGULAR_EXPRESSION: "The regular expression is not valid",
    ErrorCodes.REBOOTSTRAP_REQUIRED: "The client has to start from bootstrap.servers again",
}
"""Words for codes whose names do not say enough."""

_NAMES: dict[int, str] = {}
for _name, _code in vars(ErrorCodes).items():
    if isinstance(_code, int):
        _NAMES.setdefault(_code, _name)
