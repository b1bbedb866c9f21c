"""Records of `__cluster_metadata`: the decisions of the controller, in order.

`api_key` is the record's type, written before it in the frame of each record.
"""

from __future__ import annotations

from barnabas.wire.schema import (
    Message,
    Struct,
    field,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class RegisterBrokerRecord(Message, api_key=0, versions="0-4"):
    broker_id: int32 = field()
    is_migrating_zk_broker: bool = field("2+")
    incarnation_id: uuid = field()
    broker_epoch: int64 = field()
    end_points: list[BrokerEndpoint] = field()
    features: list[BrokerFeature] = field()
    rack: string | None = field()
    fenced: bool = field(default=True)
    in_controlled_shutdown: bool = field("1+")
    log_dirs: list[uuid] = field("3+", tag=0)
    cordoned_log_dirs: list[uuid] | None = field("4+", tag=1, default=None)


class BrokerEndpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


class BrokerFeature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


class UnregisterBrokerRecord(Message, api_key=1, versions="0"):
    broker_id: int32 = field()
    broker_epoch: int64 = field()


class TopicRecord(Message, api_key=2, versions="0"):
    name: string = field()
    topic_id: uuid = field()


class PartitionRecord(Message, api_key=3, versions="0-2"):
    partition_id: int32 = field(default=-1)
    topic_id: uuid = field()
    replicas: list[int32] = field()
    isr: list[int32] = field()
    removing_replicas: list[int32] = field()
    adding_replicas: list[int32] = field()
    leader: int32 = field(default=-1)
    leader_recovery_state: int8 = field(tag=0)
    leader_epoch: int32 = field(default=-1)
    partition_epoch: int32 = field(default=-1)
    directories: list[uuid] = field("1+")
    eligible_leader_replicas: list[int32] | None = field("2+", tag=1, default=None)
    last_known_elr: list[int32] | None = field("2+", tag=2, default=None)


class ConfigRecord(Message, api_key=4, versions="0"):
    resource_type: int8 = field()
    resource_name: string = field()
    name: string = field()
    value: string | None = field()


class PartitionChangeRecord(Message, api_key=5, versions="0-2"):
    partition_id: int32 = field(default=-1)
    topic_id: uuid = field()
    isr: list[int32] | None = field(tag=0, default=None)
    leader: int32 = field(tag=1, default=-2)
    replicas: list[int32] | None = field(tag=2, default=None)
    removing_replicas: list[int32] | None = field(tag=3, default=None)
    adding_replicas: list[int32] | None = field(tag=4, default=None)
    leader_recovery_state: int8 = field(tag=5, default=-1)
    directories: list[uuid] | None = field("1+", tag=8, default=None)
    eligible_leader_replicas: list[int32] | None = field("2+", tag=6, default=None)
    last_known_elr: list[int32] | None = field("2+", tag=7, default=None)


class FenceBrokerRecord(Message, api_key=7, versions="0"):
    id: int32 = field()
    epoch: int64 = field()


class UnfenceBrokerRecord(Message, api_key=8, versions="0"):
    id: int32 = field()
    epoch: int64 = field()


class RemoveTopicRecord(Message, api_key=9, versions="0"):
    topic_id: uuid = field()


class DelegationTokenRecord(Message, api_key=10, versions="0"):
    owner: string = field()
    requester: string = field()
    renewers: list[string] = field()
    issue_timestamp: int64 = field()
    max_timestamp: int64 = field()
    expiration_timestamp: int64 = field()
    token_id: string = field()


class UserScramCredentialRecord(Message, api_key=11, versions="0"):
    name: string = field()
    mechanism: int8 = field()
    salt: bytes = field()
    stored_key: bytes = field()
    server_key: bytes = field()
    iterations: int32 = field()


class FeatureLevelRecord(Message, api_key=12, versions="0"):
    name: string = field()
    feature_level: int16 = field()


class ClientQuotaRecord(Message, api_key=14, versions="0"):
    entity: list[EntityData] = field()
    key: string = field()
    value: float64 = field()
    remove: bool = field()


class EntityData(Struct):
    entity_type: string = field()
    entity_name: string | None = field()


class ProducerIdsRecord(Message, api_key=15, versions="0"):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    next_producer_id: int64 = field()


class BrokerRegistrationChangeRecord(Message, api_key=17, versions="0-3"):
    broker_id: int32 = field()
    broker_epoch: int64 = field()
    fenced: int8 = field(tag=0)
    in_controlled_shutdown: int8 = field("1+", tag=1)
    log_dirs: list[uuid] = field("2+", tag=2)
    cordoned_log_dirs: list[uuid] | None = field("3+", tag=3, default=None)


class AccessControlEntryRecord(Message, api_key=18, versions="0"):
    id: uuid = field()
    resource_type: int8 = field()
    resource_name: string = field()
    pattern_type: int8 = field()
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()


class RemoveAccessControlEntryRecord(Message, api_key=19, versions="0"):
    id: uuid = field()


class NoOpRecord(Message, api_key=20, versions="0"):
    """A record without fields."""


class ZkMigrationStateRecord(Message, api_key=21, versions="0"):
    zk_migration_state: int8 = field()


class RemoveUserScramCredentialRecord(Message, api_key=22, versions="0"):
    name: string = field()
    mechanism: int8 = field()


class BeginTransactionRecord(Message, api_key=23, versions="0"):
    name: string | None = field(tag=0, default=None)


class EndTransactionRecord(Message, api_key=24, versions="0"):
    """A record without fields."""


class AbortTransactionRecord(Message, api_key=25, versions="0"):
    reason: string | None = field(tag=0, default=None)


class RemoveDelegationTokenRecord(Message, api_key=26, versions="0"):
    token_id: string = field()


class RegisterControllerRecord(Message, api_key=27, versions="0"):
    controller_id: int32 = field()
    incarnation_id: uuid = field()
    zk_migration_ready: bool = field()
    end_points: list[ControllerEndpoint] = field()
    features: list[ControllerFeature] = field()


class ControllerEndpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


class ControllerFeature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


class ClearElrRecord(Message, api_key=28, versions="0"):
    topic_name: string = field()
