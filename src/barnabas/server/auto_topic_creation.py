"""How topics are made on first use, those above all that the brokers keep their own state in.

Their partitions are counted once and for all: who keeps the state of a group or a transaction
follows from it. So whoever asks for them first, they are made by their own settings.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.coordinator import topics
from barnabas.coordinator.answer import Answer
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.server.broker_node import Broker

Lookup = Callable[[str], Any]
"""The value of a broker's setting."""

PATIENCE_MS: Final = 5_000
"""How long a client is kept waiting for the controller, which may be about to change; after that
it is to ask again."""


class FirstUse:
    """Has topics made that somebody asks for. Who asks for one that is being made waits for it."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: dict[str, Answer[str]] = {}

    async def create(self, names: Collection[str], broker: "Broker") -> dict[str, str]:
        """Have the controller make them; by name, why one is not there yet.

        The image of this broker may take a moment longer to have them.
        """
        wanted = sorted(names)
        new = [name for name in wanted if name not in self._under_way]
        answers = {name: self._under_way.setdefault(name, Answer()) for name in wanted}
        if new:
            reasons = await _create(new, broker)
            for name in new:
                self._under_way.pop(name).complete(reasons.get(name, ""))
        return {name: reason for name, answer in answers.items() if (reason := await answer)}


async def _create(names: Sequence[str], broker: "Broker") -> dict[str, str]:
    request = CreateTopicsRequest(
        topics=[new_topic(name, broker.resolver.broker) for name in names],
        timeout_ms=PATIENCE_MS,
    )
    try:
        response: CreateTopicsResponse = await broker.controller.handle(
            request, timeout_ms=PATIENCE_MS
        )
    except Exception as failure:  # whoever waits must hear of it
        return dict.fromkeys(names, str(failure))
    return {
        each.name: each.error_message or ErrorCode.of(each.error_code).name
        for each in response.topics
        if each.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }


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
            return CreatableTopic(
                name=name,
                num_partitions=setting("num.partitions"),
                replication_factor=setting("default.replication.factor"),
            )


def _internal(name: str, prefix: str, configs: dict[str, Any], setting: Lookup) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=setting(f"{prefix}.num.partitions"),
        replication_factor=setting(f"{prefix}.replication.factor"),
        configs=[
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ],
    )
