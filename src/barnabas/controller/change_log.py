"""Log lines of the active controller about what it changes: topics, settings, unclean elections,
reassignments; and what is in `security_change_log`.

They are written when the changes are committed. Lines about leaders and in-sync replicas are left
out: they follow from those about brokers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.config import broker
from barnabas.config.changes import ConfigResourceType
from barnabas.config.setting import HIDDEN, SettingType
from barnabas.config.warnings import setting_warnings
from barnabas.controller.security_change_log import SecurityChanges
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.replay import apply_partition_change
from barnabas.metadata.states import ConfigResource, PartitionRegistration, RecoveryState
from barnabas.wire.messages.metadata_records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.wire.schema import Message

_logger = logging.getLogger(__name__)

_MAX_NAMES = 20
"""The partitions that one line names."""


@dataclass(slots=True)
class MetadataChanges:
    """What the records of one decision change."""

    created: dict[bytes, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    partitions: dict[bytes, list[PartitionRecord]] = field(default_factory=dict)
    grown: dict[bytes, str] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str | None]] = field(default_factory=dict)
    unclean: list[str] = field(default_factory=list)
    reassigned: dict[str, list[str]] = field(default_factory=dict)
    """What happened to reassignments, with the partitions and their replicas."""
    security: SecurityChanges = field(default_factory=SecurityChanges)

    @classmethod
    def of(cls, records: Sequence[Message], image: MetadataImage) -> MetadataChanges:
        """Collects the changes of `records`, which are not yet applied to `image`."""
        changes = cls()
        for record in records:
            match record:
                case TopicRecord():
                    changes.created[record.topic_id] = record.name
                case PartitionRecord():
                    changes.partitions.setdefault(record.topic_id, []).append(record)
                    if record.topic_id not in changes.created:
                        changes.grown[record.topic_id] = _topic_name(record.topic_id, image)
                case ConfigRecord():
                    resource = record.resource_type, record.resource_name
                    changes.configs.setdefault(resource, {})[record.name] = record.value
                case RemoveTopicRecord():
                    changes.deleted.append(_topic_name(record.topic_id, image))
                case PartitionChangeRecord():
                    changes._add_partition_change(record, image)
                case _:
                    changes.security.add(record, image)
        return changes

    def _add_partition_change(self, record: PartitionChangeRecord, image: MetadataImage) -> None:
        topic = image.topics.by_id(record.topic_id)
        before = topic.partitions.get(record.partition_id) if topic is not None else None
        if topic is None or before is None:
            return
        name = f"{topic.name}-{record.partition_id}"
        if _may_lose_records(record, before):
            self.unclean.append(name)
        if (record.replicas, record.adding_replicas, record.removing_replicas) != (
            None,
            None,
            None,
        ):
            event, replicas = _reassignment(before, apply_partition_change(before, record))
            self.reassigned.setdefault(event, []).append(f"{name} {replicas}")

    def log(self) -> None:
        """Writes a line for each change, after the records were committed."""
        for topic_id, topic in self.created.items():
            partitions = self.partitions.get(topic_id, [])
            _logger.info(
                "topic %s is created with %s and replication factor %d%s",
                topic,
                _count(partitions, "partition"),
                max((len(partition.replicas) for partition in partitions), default=0),
                self._own_configs(topic),
            )
        for topic_id, topic in self.grown.items():
            _logger.info(
                "topic %s has %s", topic, _count(self.partitions[topic_id], "new partition")
            )
        for topic in self.deleted:
            _logger.info("topic %s is deleted", topic)
        if self.unclean:
            _logger.warning(
                "unclean leader election of %s: records that the new leader does not have are lost",
                _listed(self.unclean),
            )
        for event, reassigned in self.reassigned.items():
            _logger.info("partition reassignment %s: %s", event, _listed(reassigned))
        self._log_configs()
        self.security.log()

    def _own_configs(self, topic: str) -> str:
        configs = self.configs.get((ConfigResourceType.TOPIC, topic))
        return f" ({_describe(ConfigResourceType.TOPIC, configs)})" if configs else ""

    def _log_configs(self) -> None:
        created = set(self.created.values())
        for (resource_type, name), configs in self.configs.items():
            resource = _resource_name(resource_type, name)
            is_topic = resource_type == ConfigResourceType.TOPIC
            if not (is_topic and name in created):
                _logger.info(
                    "%s: settings changed: %s", resource, _describe(resource_type, configs)
                )
            explicit = {key: value for key, value in configs.items() if value is not None}
            for warning in setting_warnings(resource_type, explicit):
                _logger.warning("%s: %s", resource, warning)


def _may_lose_records(record: PartitionChangeRecord, before: PartitionRegistration) -> bool:
    """Returns whether an unclean election chose another leader than the last one."""
    is_unclean = record.leader_recovery_state == RecoveryState.RECOVERING
    return is_unclean and before.last_known_elr != (record.leader,)


def _reassignment(before: PartitionRegistration, after: PartitionRegistration) -> tuple[str, str]:
    """Returns what happened to the reassignment of a partition, and its replicas."""
    if after.is_reassigning:
        return "has begun", f"from {_original(before)} to {_target(after)}"
    replicas = list(after.replicas)
    is_cancelled = before.is_reassigning and replicas != _target(before)
    return "is cancelled" if is_cancelled else "is complete", f"on {replicas}"


def _original(partition: PartitionRegistration) -> list[int]:
    return [replica for replica in partition.replicas if replica not in partition.adding]


def _target(partition: PartitionRegistration) -> list[int]:
    return [replica for replica in partition.replicas if replica not in partition.removing]


def _listed(partitions: Sequence[str]) -> str:
    more = len(partitions) - _MAX_NAMES
    return ", ".join(partitions[:_MAX_NAMES]) + (f" and {more} more partitions" if more > 0 else "")


def _count(partitions: Sequence[PartitionRecord], noun: str) -> str:
    return f"{len(partitions)} {noun}{'' if len(partitions) == 1 else 's'}"


def _topic_name(topic_id: bytes, image: MetadataImage) -> str:
    topic = image.topics.by_id(topic_id)
    return topic.name if topic is not None else topic_id.hex()


def _resource_name(resource_type: int, name: str) -> str:
    match resource_type:
        case ConfigResourceType.TOPIC:
            return f"topic {name}"
        case ConfigResourceType.BROKER:
            return f"broker {name}" if name else "all brokers"
        case ConfigResourceType.GROUP:
            return f"group {name}"
    return f"client metrics subscription {name}"


def _describe(resource_type: int, configs: Mapping[str, str | None]) -> str:
    return ", ".join(
        f"{name} is removed" if value is None else f"{name}={_shown(resource_type, name, value)}"
        for name, value in configs.items()
    )


def _shown(resource_type: int, name: str, value: str) -> str:
    """Returns the value; passwords are hidden, and so are unknown settings, which may be some."""
    if resource_type != ConfigResourceType.BROKER:
        return value
    setting = broker.find(name)
    return HIDDEN if setting is None or setting.type is SettingType.PASSWORD else value
