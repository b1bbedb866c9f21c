"""The records of a snapshot: those that build an equal image from an empty one."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from barnabas.metadata.features import METADATA_VERSION
from barnabas.metadata.states import (
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    PartitionRegistration,
    ScramCredential,
    TopicImage,
)
from barnabas.wire.messages import metadata_records as wire
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage

E = TypeVar("E")


def snapshot_records(image: "MetadataImage") -> Iterator[Message]:
    """Yields the records of an image; features first, as they decide how to read the rest."""
    yield from _features(image)
    for broker in image.brokers.values():
        yield broker_record(broker)
    for controller in image.controllers.values():
        yield controller_record(controller)
    for topic in image.topics:
        yield from _topic(topic)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield wire.ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
    yield from _quotas(image)
    if image.next_producer_id:
        # The broker that has the last block does not matter any more.
        yield wire.ProducerIdsRecord(broker_id=-1, next_producer_id=image.next_producer_id)
    yield from _security(image)


def partition_record(topic_id: bytes, index: int, partition: PartitionRegistration) -> Message:
    """Returns the record that creates a partition in this state."""
    return wire.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def broker_record(broker: BrokerRegistration) -> wire.RegisterBrokerRecord:
    """Returns the record that registers a broker in this state."""
    cordoned = broker.cordoned_log_dirs
    return wire.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=_endpoints(wire.BrokerEndpoint, broker),
        features=_supported_features(wire.BrokerFeature, broker),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def controller_record(controller: ControllerRegistration) -> wire.RegisterControllerRecord:
    """Returns the record that registers a controller."""
    return wire.RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        end_points=_endpoints(wire.ControllerEndpoint, controller),
        features=_supported_features(wire.ControllerFeature, controller),
    )


def _endpoints(
    entry: Callable[..., E], node: BrokerRegistration | ControllerRegistration
) -> list[E]:
    return [entry(**asdict(endpoint)) for endpoint in node.endpoints]


def _supported_features(
    entry: Callable[..., E], node: BrokerRegistration | ControllerRegistration
) -> list[E]:
    return [
        entry(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
        for name, levels in node.features.items()
    ]


def scram_record(user: str, mechanism: int, credential: ScramCredential) -> Message:
    """Returns the record that sets a credential of a user."""
    return wire.UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def token_record(token: DelegationToken) -> Message:
    """Returns the record that creates or changes a delegation token."""
    return wire.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=token.expiration_timestamp_ms,
        token_id=token.token_id,
    )


def _features(image: "MetadataImage") -> Iterator[Message]:
    level = image.features.get(METADATA_VERSION)
    if level is not None:
        yield wire.FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield wire.FeatureLevelRecord(name=name, feature_level=level)


def _topic(topic: TopicImage) -> Iterator[Message]:
    yield wire.TopicRecord(name=topic.name, topic_id=topic.topic_id)
    for index, partition in topic.partitions.items():
        yield partition_record(topic.topic_id, index, partition)


def _quotas(image: "MetadataImage") -> Iterator[Message]:
    for entity, values in image.quotas.items():
        for key, value in values.items():
            parts = [wire.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield wire.ClientQuotaRecord(entity=parts, key=key, value=value)


def _security(image: "MetadataImage") -> Iterator[Message]:
    for acl_id, acl in image.acls.items():
        yield wire.AccessControlEntryRecord(
            id=acl_id,
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
    for (user, mechanism), credential in image.scram.items():
        yield scram_record(user, mechanism, credential)
    for token in image.tokens.values():
        yield token_record(token)
