"""Creates topics on first use, in particular the internal topics of the coordinators.

The number of partitions of an internal topic never changes, because it determines which broker
coordinates a group or a transaction. So these topics are always created by their own settings,
whichever request needs them first.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.coordinator import records
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode

SettingLookup = Callable[[str], Any]
"""Returns the value of a broker's setting."""

log = logging.getLogger(__name__)

CREATION_TIMEOUT_MS: Final = 5_000
"""How long a client waits for the controller, which may be about to change; then it retries."""


_INTERNAL_PREFIXES: Final = {
    records.GROUPS_TOPIC: "offsets.topic",
    records.TRANSACTIONS_TOPIC: "transaction.state.log",
    records.SHARE_GROUPS_TOPIC: "share.coordinator.state.topic",
}
"""What the settings of an internal topic begin with."""


class AutoTopicCreator:
    """Creates topics; concurrent requests for one topic wait for the same creation."""

    __slots__ = ("_failures", "_in_progress")

    def __init__(self) -> None:
        self._in_progress: dict[str, PendingResponse[str]] = {}
        self._failures: dict[str, str] = {}  # of internal topics, as logged last

    async def create(self, names: Collection[str], broker: "BrokerNode") -> dict[str, str]:
        """Has the controller create the topics; returns the error messages of those that failed.

        The metadata image of this broker may contain the new topics only a moment later.
        """
        requested = sorted(names)
        new = [name for name in requested if name not in self._in_progress]
        responses = {
            name: self._in_progress.setdefault(name, PendingResponse()) for name in requested
        }
        if new:
            reasons = await _create(new, broker)
            for name in new:
                self._in_progress.pop(name).complete(reasons.get(name, ""))
                self._log_failure(name, reasons.get(name, ""))
        return {name: reason for name, response in responses.items() if (reason := await response)}

    def _log_failure(self, name: str, reason: str) -> None:
        """Logs once why an internal topic cannot be created: clients retry every second."""
        if name not in _INTERNAL_PREFIXES or self._failures.get(name, "") == reason:
            return
        self._failures[name] = reason
        if reason:
            log.warning(
                "Topic %s cannot be created: %s Clients wait for it. Its settings are %s.*",
                name,
                reason if reason.endswith(".") else f"{reason}.",
                _INTERNAL_PREFIXES[name],
            )


async def _create(names: Sequence[str], broker: "BrokerNode") -> dict[str, str]:
    request = CreateTopicsRequest(
        topics=[creatable_topic(name, broker.resolver.broker) for name in names],
        timeout_ms=CREATION_TIMEOUT_MS,
    )
    try:
        response: CreateTopicsResponse = await broker.controller.handle(
            request, timeout_ms=CREATION_TIMEOUT_MS
        )
    except Exception as failure:  # the requests that wait must receive it
        return dict.fromkeys(names, str(failure))
    return {
        topic.name: topic.error_message or ErrorCode.of(topic.error_code).name
        for topic in response.topics
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }


def creatable_topic(name: str, setting: SettingLookup) -> CreatableTopic:
    """Returns the topic to request from the controller."""
    match name:
        case records.GROUPS_TOPIC:
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": setting("offsets.topic.segment.bytes"),
            }
            return _internal(name, configs, setting)
        case records.TRANSACTIONS_TOPIC:
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": setting("transaction.state.log.min.isr"),
                "segment.bytes": setting("transaction.state.log.segment.bytes"),
                "unclean.leader.election.enable": "false",
            }
            return _internal(name, configs, setting)
        case records.SHARE_GROUPS_TOPIC:
            configs = {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": setting("share.coordinator.state.topic.min.isr"),
                "retention.ms": "-1",
                "segment.bytes": setting("share.coordinator.state.topic.segment.bytes"),
            }
            return _internal(name, configs, setting)
        case _:
            return CreatableTopic(
                name=name,
                num_partitions=setting("num.partitions"),
                replication_factor=setting("default.replication.factor"),
            )


def _internal(name: str, configs: dict[str, Any], setting: SettingLookup) -> CreatableTopic:
    prefix = _INTERNAL_PREFIXES[name]
    return CreatableTopic(
        name=name,
        num_partitions=setting(f"{prefix}.num.partitions"),
        replication_factor=setting(f"{prefix}.replication.factor"),
        configs=[
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ],
    )
