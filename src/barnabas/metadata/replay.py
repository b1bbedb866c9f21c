"""Applies metadata records to an image, with one function for each type.

None of them can fail. A record about something that the image lacks changes nothing: that happens
when the beginning of the log was replaced by a snapshot of another version.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import METADATA_VERSION
from barnabas.metadata.states import (
    AclEntry,
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    Directories,
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
    replicas = _replicas(record.replicas)
    state = PartitionRegistration(
        replicas,
        _replicas(record.isr),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        _directories(record.directories) or (DirectoryId.MIGRATING,) * len(replicas),
        _replicas(record.removing_replicas),
        _replicas(record.adding_replicas),
        record.leader_recovery_state,
        _replicas(record.eligible_leader_replicas or ()),
        _replicas(record.last_known_elr or ()),
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
        return unchanged if changed is None else _replicas(changed)

    begins_epoch = record.leader != _UNCHANGED_LEADER
    recovery = record.leader_recovery_state
    replicas = changed_or(record.replicas, before.replicas)
    directories = before.directories
    if record.directories is not None:
        directories = _directories(record.directories)
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
    values = dict(image.configs.get(resource, ()))
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if values:
        image.configs[resource] = values
    else:
        image.configs.pop(resource, None)
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
        _directories(record.log_dirs),
        None if cordoned is None else _directories(cordoned),
    )
    delta.brokers_changed.add(record.broker_id)


def _unregister_broker(
    image: "MetadataImage", record: wire.UnregisterBrokerRecord, delta: MetadataDelta
) -> None:
    if image.brokers.pop(record.broker_id, None) is not None:
        delta.brokers_changed.add(record.broker_id)


def _fence_broker(
    image: "MetadataImage", record: wire.FenceBrokerRecord, delta: MetadataDelta
) -> None:
    _change_broker(image, record.id, delta, fenced=True)


def _unfence_broker(
    image: "MetadataImage", record: wire.UnfenceBrokerRecord, delta: MetadataDelta
) -> None:
    _change_broker(image, record.id, delta, fenced=False)


def _registration_change(
    image: "MetadataImage", record: wire.BrokerRegistrationChangeRecord, delta: MetadataDelta
) -> None:
    changes: dict[str, Any] = {}
    if record.fenced:
        changes["fenced"] = record.fenced > 0
    if record.in_controlled_shutdown:
        changes["in_controlled_shutdown"] = record.in_controlled_shutdown > 0
    if record.log_dirs:
        changes["log_dirs"] = _directories(record.log_dirs)
    if record.cordoned_log_dirs is not None:
        changes["cordoned_log_dirs"] = _directories(record.cordoned_log_dirs)
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
    values = dict(image.quotas.get(entity, ()))
    if record.remove:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    if values:
        image.quotas[entity] = values
    else:
        image.quotas.pop(entity, None)
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


def _remove_acl(
    image: "MetadataImage", record: wire.RemoveAccessControlEntryRecord, delta: MetadataDelta
) -> None:
    if image.acls.pop(record.id, None) is not None:
        delta.acls_changed.add(record.id)


def _scram(
    image: "MetadataImage", record: wire.UserScramCredentialRecord, delta: MetadataDelta
) -> None:
    user = (record.name, record.mechanism)
    image.scram[user] = ScramCredential(
        record.salt, record.stored_key, record.server_key, record.iterations
    )
    delta.scram_changed.add(user)


def _remove_scram(
    image: "MetadataImage", record: wire.RemoveUserScramCredentialRecord, delta: MetadataDelta
) -> None:
    if image.scram.pop((record.name, record.mechanism), None) is not None:
        delta.scram_changed.add((record.name, record.mechanism))


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


def _remove_token(
    image: "MetadataImage", record: wire.RemoveDelegationTokenRecord, delta: MetadataDelta
) -> None:
    if image.tokens.pop(record.token_id, None) is not None:
        delta.tokens_changed.add(record.token_id)


REPLAY_FUNCTIONS: dict[type[Message], Callable[["MetadataImage", Any, MetadataDelta], None]] = {
    wire.TopicRecord: _topic,
    wire.RemoveTopicRecord: _remove_topic,
    wire.PartitionRecord: _partition,
    wire.PartitionChangeRecord: _partition_change,
    wire.ClearElrRecord: _clear_elr,
    wire.ConfigRecord: _config,
    wire.RegisterBrokerRecord: _register_broker,
    wire.UnregisterBrokerRecord: _unregister_broker,
    wire.FenceBrokerRecord: _fence_broker,
    wire.UnfenceBrokerRecord: _unfence_broker,
    wire.BrokerRegistrationChangeRecord: _registration_change,
    wire.RegisterControllerRecord: _register_controller,
    wire.FeatureLevelRecord: _feature_level,
    wire.ProducerIdsRecord: _producer_ids,
    wire.ClientQuotaRecord: _client_quota,
    wire.AccessControlEntryRecord: _acl,
    wire.RemoveAccessControlEntryRecord: _remove_acl,
    wire.UserScramCredentialRecord: _scram,
    wire.RemoveUserScramCredentialRecord: _remove_scram,
    wire.DelegationTokenRecord: _token,
    wire.RemoveDelegationTokenRecord: _remove_token,
}


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


# Thousands of partitions share a few replica sets: there is one tuple for every set.
_interned_replicas: dict[tuple[int, ...], Replicas] = {}
_interned_directories: dict[tuple[bytes, ...], Directories] = {}
_MAX_INTERNED = 10_000


def _replicas(values: Sequence[int]) -> Replicas:
    if not values:
        return ()
    if len(_interned_replicas) > _MAX_INTERNED:
        _interned_replicas.clear()
    replicas = tuple(values)
    return _interned_replicas.setdefault(replicas, replicas)


def _directories(values: Sequence[bytes]) -> Directories:
    if not values:
        return ()
    if len(_interned_directories) > _MAX_INTERNED:
        _interned_directories.clear()
    directories = tuple(values)
    return _interned_directories.setdefault(directories, directories)


def read_endpoints(
    entries: Iterable[Any],
) -> tuple[ListenerEndpoint, ...]:
    """Returns the endpoints in a registration request or record."""
    return tuple(ListenerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in entries)


def read_features(
    entries: Iterable[Any],
) -> dict[str, FeatureLevelRange]:
    """Returns the supported features in a registration request or record."""
    return {
        f.name: FeatureLevelRange(f.min_supported_version, f.max_supported_version) for f in entries
    }
