"""Every error code by its names in librdkafka and Kafka, and what it means.

Codes from -1 up are the protocol's, and derive from `ErrorCode`. Codes below -100 are local to the
client: no broker sends them.
"""

from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode


def error_name(code: int) -> str:
    """Returns the constant's name, librdkafka's if the two differ."""
    return _NAMES.get(code, f"ERR_{code}?")


def error_text(code: int) -> str:
    """Returns what a code means, in a sentence."""
    if code not in _NAMES:
        return f"Unknown error {code}"
    if code == ErrorCodes.NO_ERROR:
        return "Success"
    if code in _LOCAL:
        return f"Local: {_LOCAL[code]}"
    words = ErrorCode.of(code).name.replace("_", " ").capitalize()
    return f"Broker: {_BROKER.get(code, words)}"


class _DerivedCodes(type):
    """Tells type checkers that `ErrorCodes` also has the names of `ErrorCode`, as ints."""

    if TYPE_CHECKING:

        def __getattr__(cls, name: str) -> int: ...


class ErrorCodes(metaclass=_DerivedCodes):
    """The constants of KafkaError: local codes, librdkafka's names, and those of `ErrorCode`."""

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

    # librdkafka's own names of protocol errors
    UNKNOWN = -1
    NO_ERROR = 0
    INVALID_MSG = 2
    UNKNOWN_TOPIC_OR_PART = 3
    INVALID_MSG_SIZE = 4
    NOT_LEADER_FOR_PARTITION = 6
    MSG_SIZE_TOO_LARGE = 10
    STALE_CTRL_EPOCH = 11
    TOPIC_EXCEPTION = 17


for _code in ErrorCode:
    if _code is not ErrorCode.NONE:
        setattr(ErrorCodes, _code.name, int(_code))

_NAMES: dict[int, str] = {}
for _name, _value in vars(ErrorCodes).items():
    if isinstance(_value, int):
        _NAMES.setdefault(_value, _name)


_LOCAL: dict[int, str] = {
    ErrorCodes._BAD_MSG: "A message is not in a format that can be read",
    ErrorCodes._BAD_COMPRESSION: "Compressed records cannot be decompressed",
    ErrorCodes._DESTROY: "The client is closed or closing",
    ErrorCodes._FAIL: "The communication with the broker failed",
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
    ErrorCodes._IN_PROGRESS: "The operation is in progress already",
    ErrorCodes._PREV_IN_PROGRESS: "A previous operation is in progress",
    ErrorCodes._EXISTING_SUBSCRIPTION: "There is another subscription",
    ErrorCodes._ASSIGN_PARTITIONS: "Partitions are to be assigned",
    ErrorCodes._REVOKE_PARTITIONS: "Partitions are to be revoked",
    ErrorCodes._CONFLICT: "The uses conflict with each other",
    ErrorCodes._STATE: "Not allowed in this state",
    ErrorCodes._UNKNOWN_PROTOCOL: "The protocol is unknown",
    ErrorCodes._NOT_IMPLEMENTED: "Not implemented",
    ErrorCodes._AUTHENTICATION: "The broker rejects the credentials",
    ErrorCodes._NO_OFFSET: "There is no offset to commit",
    ErrorCodes._OUTDATED: "The state is outdated",
    ErrorCodes._TIMED_OUT_QUEUE: "Timed out before it was sent",
    ErrorCodes._UNSUPPORTED_FEATURE: "The broker lacks a required feature",
    ErrorCodes._WAIT_CACHE: "Waiting for metadata",
    ErrorCodes._INTR: "Interrupted",
    ErrorCodes._KEY_SERIALIZATION: "The key cannot be serialized",
    ErrorCodes._VALUE_SERIALIZATION: "The value cannot be serialized",
    ErrorCodes._KEY_DESERIALIZATION: "The key cannot be deserialized",
    ErrorCodes._VALUE_DESERIALIZATION: "The value cannot be deserialized",
    ErrorCodes._PARTIAL: "The response is incomplete",
    ErrorCodes._READ_ONLY: "The property cannot be changed",
    ErrorCodes._NOENT: "There is no such entry",
    ErrorCodes._UNDERFLOW: "The response ends too early",
    ErrorCodes._INVALID_TYPE: "The type is wrong",
    ErrorCodes._RETRY: "Try again",
    ErrorCodes._PURGE_QUEUE: "Purged before it was sent",
    ErrorCodes._PURGE_INFLIGHT: "Purged while it was in flight",
    ErrorCodes._FATAL: "The client cannot continue after a fatal error",
    ErrorCodes._INCONSISTENT: "The state is not consistent",
    ErrorCodes._GAPLESS_GUARANTEE: "Continuing would leave a gap in the order of messages",
    ErrorCodes._MAX_POLL_EXCEEDED: "poll() was not called within max.poll.interval.ms",
    ErrorCodes._UNKNOWN_BROKER: "There is no such broker",
    ErrorCodes._NOT_CONFIGURED: "The settings do not enable this",
    ErrorCodes._FENCED: "A newer instance has taken over",
    ErrorCodes._APPLICATION: "An error of the application",
    ErrorCodes._ASSIGNMENT_LOST: "The group has assigned our partitions to other members",
    ErrorCodes._NOOP: "Nothing was done",
    ErrorCodes._AUTO_OFFSET_RESET: "There is no offset to start at, and auto.offset.reset is none",
    ErrorCodes._LOG_TRUNCATION: "The partition lost records that were read",
    ErrorCodes._INVALID_DIFFERENT_RECORD: "Another record of the same batch was rejected",
    ErrorCodes._DESTROY_BROKER: "The connection to the broker is closed",
}

_BROKER: dict[int, str] = {
    ErrorCode.CORRUPT_MESSAGE: "A record is damaged, or has no key where the topic needs one",
    ErrorCode.INVALID_FETCH_SIZE: "The size to fetch is not valid",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "The broker does not lead this partition",
    ErrorCode.BROKER_NOT_AVAILABLE: "The broker is not available",
    ErrorCode.REPLICA_NOT_AVAILABLE: "The replica is not available",
    ErrorCode.MESSAGE_TOO_LARGE: "The message is larger than the topic allows",
    ErrorCode.NETWORK_EXCEPTION: "The broker lost a connection before it had a response",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available",
    ErrorCode.NOT_COORDINATOR: "The broker is not the coordinator",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "The topic's name is not allowed",
    ErrorCode.RECORD_LIST_TOO_LARGE: "The batch is larger than a segment",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Too few replicas are in sync",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "Too few replicas have the message",
    ErrorCode.ILLEGAL_GENERATION: "The generation is not the group's",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "The member's protocols do not fit the group's",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group does not know the member",
    ErrorCode.REBALANCE_IN_PROGRESS: "The group is rebalancing",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "The offsets to commit are too large",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Not authorized for the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Not authorized for the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Not authorized for the cluster",
    ErrorCode.ILLEGAL_SASL_STATE: "The request does not fit this step of SASL",
    ErrorCode.UNSUPPORTED_VERSION: "The broker does not have this version of the API",
    ErrorCode.INVALID_CONFIG: "A setting is not valid",
    ErrorCode.NOT_CONTROLLER: "The broker is not the controller",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "The message format of the topic does not support it",
    ErrorCode.POLICY_VIOLATION: "A policy of the broker forbids the request",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "The sequence number was used before",
    ErrorCode.INVALID_PRODUCER_EPOCH: "The producer's epoch is old: another instance is active",
    ErrorCode.INVALID_TXN_STATE: "The transaction is in another state",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "The producer id is not that of the transactional id",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "The timeout exceeds transaction.max.timeout.ms",
    ErrorCode.CONCURRENT_TRANSACTIONS: "Another request of the same transaction is not done yet",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "The coordinator of the transaction was replaced",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Not authorized for the transactional id",
    ErrorCode.SECURITY_DISABLED: "Security is disabled",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "Not attempted, because something before it failed",
    ErrorCode.KAFKA_STORAGE_ERROR: "The broker's disk failed",
    ErrorCode.LOG_DIR_NOT_FOUND: "The broker has no such log directory",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "Authentication failed",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation tokens are disabled",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Not allowed on this connection",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "The type of principal is unknown",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no such group",
    ErrorCode.LISTENER_NOT_FOUND: "The leader has no listener of this name",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topics may not be deleted",
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch is older than the broker's",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "The leader epoch is newer than the broker's",
    ErrorCode.STALE_BROKER_EPOCH: "The broker has restarted",
    ErrorCode.OFFSET_NOT_AVAILABLE: "The new leader does not know its high watermark yet",
    ErrorCode.MEMBER_ID_REQUIRED: "The member has to join with the id in the response",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group is full",
    ErrorCode.FENCED_INSTANCE_ID: "Another member has the same group.instance.id",
    ErrorCode.ELECTION_NOT_NEEDED: "The preferred replica leads already",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "The group is subscribed to the topic",
    ErrorCode.INVALID_RECORD: "A record is not valid",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "Offsets of unfinished transactions are pending",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The quota is exceeded",
    ErrorCode.PRODUCER_FENCED: "Another producer with this transactional id is active",
    ErrorCode.RESOURCE_NOT_FOUND: "There is no such resource",
    ErrorCode.DUPLICATE_RESOURCE: "The request names a resource twice",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "The credential is not acceptable",
    ErrorCode.INCONSISTENT_TOPIC_ID: "The topic id is not the one of the log",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member's epoch is fenced",
    ErrorCode.UNRELEASED_INSTANCE_ID: "The group.instance.id is in use",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "The broker has no such assignor",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "The request belongs to another kind of endpoint",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "The subscription of metrics is out of date",
    ErrorCode.TELEMETRY_TOO_LARGE: "The metrics are too large",
    ErrorCode.TRANSACTION_ABORTABLE: "The transaction has to be aborted",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The regular expression is not valid",
    ErrorCode.REBOOTSTRAP_REQUIRED: "The client has to start from bootstrap.servers again",
}
"""Texts of codes whose names do not say enough."""
