"""How the topics are made that the broker keeps its own state in.

Their partitions are counted once and for all: who keeps the state of a group or a transaction
follows from it. So whoever asks for them first, they are made by their own settings.
"""

from collections.abc import Callable
from typing import Any

from barnabas.coordinator import topics
from barnabas.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

Lookup = Callable[[str], Any]
"""The value of a broker's setting."""


def new_topic(name: str, setting: Lookup) -> CreatableTopic:
    """What to ask the controller for when a topic comes into being on first use."""
    match name:
        case topics.GROUPS_TOPIC:
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": setting("offsets.topic.segment.bytes"),
            }
            return _internal(name, "offsets.topic", configs, setting)
        case topics.TRANSACTIONS_TOPIC:
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": setting("transaction.state.log.min.isr"),
                "segment.bytes": setting("transaction.state.log.segment.bytes"),
                "unclean.leader.election.enable": "false",
            }
            return _internal(name, "transaction.state.log", configs, setting)
        case topics.SHARE_GROUPS_TOPIC:
            configs = {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": setting("share.coordinator.state.topic.min.isr"),
                "retention.ms": "-1",
                "segment.bytes": setting("share.coordinator.state.topic.segment.bytes"),
            }
            return _internal(name, "share.coordinator.state.topic", configs, setting)
        case _:
            return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)


def _internal(name: str, prefix: str, configs: dict[str, Any], setting: Lookup) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=setting(f"{prefix}.num.partitions"),
        replication_factor=setting(f"{prefix}.replication.factor"),
        configs=[
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ],
    )
