"""Applies metadata records to an image, with one function for each type.

None of them can fail. A record about something that the image lacks changes nothing: that happens
when the beginning of the log was replaced by a snapshot of another version.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import METADATA_VERSION
from barnabas.metadata.states import (
    AclEntry,
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    DirectoryId,
    FeatureLevelRange,
    ListenerEndpoint,
    PartitionRegistration,
    Replicas,
    ScramCredential,
    TopicImage,
)
from barnabas.wire.messages import metadata_records as wire
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage

K = TypeVar("K")
V = TypeVar("V")

_UNCHANGED_LEADER = -2
_UNCHANGED_RECOVERY = -1
_TOPIC_CONFIG = 2


def _topic(image: "MetadataImage", record: wire.TopicRecord, delta: MetadataDelta) -> None:
    topic = TopicImage(record.name, record.topic_id)
    image.topics.add(topic)
    delta.topics_created[record.topic_id] = topic


def _remove_topic(
    image: "MetadataImage", record: wire.RemoveTopicRecord, delta: MetadataDelta
) -> None:
    topic = image.topics.remove(record.topic_id)
    if topic is None:
        return
    if delta.topics_created.pop(record.topic_id, None) is None:
        delta.topics_deleted[record.topic_id] = topic
    for index in topic.partitions:
        delta.partitions_changed.pop((record.topic_id, index), None)
    if image.configs.pop((_TOPIC_CONFIG, topic.name), None) is not None:
        delta.configs_changed.add((_TOPIC_CONFIG, topic.name))


def _partition(image: "MetadataImage", record: wire.PartitionRecord, delta: MetadataDelta) -> None:
    topic = image.topics.by_id(record.topic_id)
    if topic is None:
        return
    replicas = _intern(record.replicas)
    state = PartitionRegistration(
        replicas,
        _intern(record.isr),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        _intern(record.directories) or (DirectoryId.MIGRATING,) * len(replicas),
        _intern(record.removing_replicas),
        _intern(record.adding_replicas),
        record.leader_recovery_state,
        _intern(record.eligible_leader_replicas or ()),
        _intern(record.last_known_elr or ()),
    )
    _put_partition(image, topic, record.partition_id, state, delta)


def _partition_change(
    image: "MetadataImage", record: wire.PartitionChangeRecord, delta: MetadataDelta
) -> None:
    topic = image.topics.by_id(record.topic_id)
    before = topic.partitions.get(record.partition_id) if topic is not None else None
    if topic is None or before is None:
        return
    _put_partition(image, topic, record.partition_id, apply_partition_change(before, record), delta)


def apply_partition_change(
    before: PartitionRegistration, record: wire.PartitionChangeRecord
) -> PartitionRegistration:
    """Returns a partition after a change record. A leader in it, even the same, begins an epoch."""

    def changed_or(changed: Sequence[int] | None, unchanged: Replicas) -> Replicas:
        return unchanged if changed is None else _intern(changed)

    begins_epoch = record.leader != _UNCHANGED_LEADER
    recovery = record.leader_recovery_state
    replicas = changed_or(record.replicas, before.replicas)
    directories = before.directories
    if record.directories is not None:
        directories = _intern(record.directories)
    elif len(directories) != len(replicas):
        directories = tuple(before.directory_of(replica) for replica in replicas)
    return PartitionRegistration(
        replicas,
        changed_or(record.isr, before.isr),
        record.leader if begins_epoch else before.leader,
        before.leader_epoch + begins_epoch,
        before.partition_epoch + 1,
        directories,
        changed_or(record.removing_replicas, before.removing),
        changed_or(record.adding_replicas, before.adding),
        before.recovery_state if recovery == _UNCHANGED_RECOVERY else recovery,
        changed_or(record.eligible_leader_replicas, before.elr),
        changed_or(record.last_known_elr, before.last_known_elr),
    )


def _clear_elr(image: "MetadataImage", record: wire.ClearElrRecord, delta: MetadataDelta) -> None:
    """Clears the eligible leader replicas of one topic, or of all if none is named (KIP-966)."""
    named = image.topics.by_name(record.topic_name)
    topics = list(image.topics) if not record.topic_name else [named] if named else []
    for topic in topics:
        for index, partition in list(topic.partitions.items()):
            if partition.elr or partition.last_known_elr:
                cleared = replace(partition, elr=(), last_known_elr=())
                _put_partition(image, topic, index, cleared, delta)


def _config(image: "MetadataImage", record: wire.ConfigRecord, delta: MetadataDelta) -> None:
    resource = (record.resource_type, record.resource_name)
    _put_value(image.configs, resource, record.name, record.value)
    delta.configs_changed.add(resource)


def _register_broker(
    image: "MetadataImage", record: wire.RegisterBrokerRecord, delta: MetadataDelta
) -> None:
    cordoned = record.cordoned_log_dirs
    image.brokers[record.broker_id] = BrokerRegistration(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        read_endpoints(record.end_points),
        read_features(record.features),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        _intern(record.log_dirs),
        None if cordoned is None else _intern(cordoned),
    )
    delta.brokers_changed.add(record.broker_id)


def _registration_change(
    image: "MetadataImage", record: wire.BrokerRegistrationChangeRecord, delta: MetadataDelta
) -> None:
    changes: dict[str, Any] = {}
    if record.fenced:
        changes["fenced"] = record.fenced > 0
    if record.in_controlled_shutdown:
        changes["in_controlled_shutdown"] = record.in_controlled_shutdown > 0
    if record.log_dirs:
        changes["log_dirs"] = _intern(record.log_dirs)
    if record.cordoned_log_dirs is not None:
        changes["cordoned_log_dirs"] = _intern(record.cordoned_log_dirs)
    _change_broker(image, record.broker_id, delta, **changes)


def _register_controller(
    image: "MetadataImage", record: wire.RegisterControllerRecord, delta: MetadataDelta
) -> None:
    image.controllers[record.controller_id] = ControllerRegistration(
        record.controller_id,
        record.incarnation_id,
        read_endpoints(record.end_points),
        read_features(record.features),
    )
    delta.controllers_changed.add(record.controller_id)


def _feature_level(
    image: "MetadataImage", record: wire.FeatureLevelRecord, delta: MetadataDelta
) -> None:
    if record.feature_level == 0 and record.name != METADATA_VERSION:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level
    delta.features_changed.add(record.name)


def _producer_ids(
    image: "MetadataImage", record: wire.ProducerIdsRecord, delta: MetadataDelta
) -> None:
    image.next_producer_id = record.next_producer_id
    delta.producer_ids_changed = True


def _client_quota(
    image: "MetadataImage", record: wire.ClientQuotaRecord, delta: MetadataDelta
) -> None:
    entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
    _put_value(image.quotas, entity, record.key, None if record.remove else record.value)
    delta.quotas_changed.add(entity)


def _acl(
    image: "MetadataImage", record: wire.AccessControlEntryRecord, delta: MetadataDelta
) -> None:
    image.acls[record.id] = AclEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
    delta.acls_changed.add(record.id)


def _scram(
    image: "MetadataImage", record: wire.UserScramCredentialRecord, delta: MetadataDelta
) -> None:
    user = (record.name, record.mechanism)
    image.scram[user] = ScramCredential(
        record.salt, record.stored_key, record.server_key, record.iterations
    )
    delta.scram_changed.add(user)


def _token(
    image: "MetadataImage", record: wire.DelegationTokenRecord, delta: MetadataDelta
) -> None:
    image.tokens[record.token_id] = DelegationToken(
        record.token_id,
        record.owner,
        record.requester,
        tuple(record.renewers),
        record.issue_timestamp,
        record.max_timestamp,
        record.expiration_timestamp,
    )
    delta.tokens_changed.add(record.token_id)


REPLAY_FUNCTIONS: dict[type[Message], Callable[["MetadataImage", Any, MetadataDelta], None]] = {
    wire.TopicRecord: _topic,
    wire.RemoveTopicRecord: _remove_topic,
    wire.PartitionRecord: _partition,
    wire.PartitionChangeRecord: _partition_change,
    wire.ClearElrRecord: _clear_elr,
    wire.ConfigRecord: _config,
    wire.RegisterBrokerRecord: _register_broker,
    wire.UnregisterBrokerRecord: lambda image, record, delta: _remove(
        image.brokers, record.broker_id, delta.brokers_changed
    ),
    wire.FenceBrokerRecord: lambda image, record, delta: _change_broker(
        image, record.id, delta, fenced=True
    ),
    wire.UnfenceBrokerRecord: lambda image, record, delta: _change_broker(
        image, record.id, delta, fenced=False
    ),
    wire.BrokerRegistrationChangeRecord: _registration_change,
    wire.RegisterControllerRecord: _register_controller,
    wire.FeatureLevelRecord: _feature_level,
    wire.ProducerIdsRecord: _producer_ids,
    wire.ClientQuotaRecord: _client_quota,
    wire.AccessControlEntryRecord: _acl,
    wire.RemoveAccessControlEntryRecord: lambda image, record, delta: _remove(
        image.acls, record.id, delta.acls_changed
    ),
    wire.UserScramCredentialRecord: _scram,
    wire.RemoveUserScramCredentialRecord: lambda image, record, delta: _remove(
        image.scram, (record.name, record.mechanism), delta.scram_changed
    ),
    wire.DelegationTokenRecord: _token,
    wire.RemoveDelegationTokenRecord: lambda image, record, delta: _remove(
        image.tokens, record.token_id, delta.tokens_changed
    ),
}


def _remove(entries: dict[K, Any], key: K, changed: set[K]) -> None:
    if entries.pop(key, None) is not None:
        changed.add(key)


def _put_value(owners: dict[K, dict[str, V]], owner: K, name: str, value: V | None) -> None:
    """Replaces the values of an owner by a copy with one change; None removes the value."""
    values = dict(owners.get(owner, ()))
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
    if values:
        owners[owner] = values
    else:
        owners.pop(owner, None)


def _put_partition(
    image: "MetadataImage",
    topic: TopicImage,
    index: int,
    state: PartitionRegistration,
    delta: MetadataDelta,
) -> None:
    image.topics.put_partition(topic, index, state)
    delta.partitions_changed[(topic.topic_id, index)] = state


def _change_broker(
    image: "MetadataImage", broker_id: int, delta: MetadataDelta, **changes: Any
) -> None:
    before = image.brokers.get(broker_id)
    if before is not None:
        image.brokers[broker_id] = replace(before, **changes)
        delta.brokers_changed.add(broker_id)


_interned: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_MAX_INTERNED = 10_000


def _intern(values: Sequence[V]) -> tuple[V, ...]:
    """Thousands of partitions share a few sets of replicas: there is one tuple for every set."""
    if not values:
        return ()
    if len(_interned) > _MAX_INTERNED:
        _interned.clear()
    interned = tuple(values)
    return _interned.setdefault(interned, interned)


def read_endpoints(entries: Iterable[Any]) -> tuple[ListenerEndpoint, ...]:
    """Returns the endpoints in a registration request or record."""
    return tuple(ListenerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in entries)


def read_features(entries: Iterable[Any]) -> dict[str, FeatureLevelRange]:
    """Returns the supported features in a registration request or record."""
    return {
        f.name: FeatureLevelRange(f.min_supported_version, f.max_supported_version) for f in entries
    }
