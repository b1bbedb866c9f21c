"""What a decision of the controller depends on besides the image, and the shape it has.

Each API has a function `decide(request, image, context)`: a pure function of the speculative
image, in which everything decided before is committed already. It raises KafkaError if the request
fails as a whole.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from barnabas.config import topic
from barnabas.config.descriptions import SettingSource, describe_topic
from barnabas.config.resolver import ConfigResolver
from barnabas.config.setting import to_text
from barnabas.controller.heartbeat_tracker import BrokerContact, BrokerHeartbeatTracker
from barnabas.decision import Decision
from barnabas.metadata.states import BrokerRegistration, DirectoryId
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import CreatableTopicConfigs
from barnabas.wire.schema import Message

MAX_RECORDS: Final = 10_000
"""The limit on the records of one decision, and on the partitions in one request, as in Kafka."""


class EffectiveTopicConfigs:
    """The configs of a new topic, as CreateTopics returns them (KIP-525).

    The default configs are described once for all topics, until the defaults change.
    """

    __slots__ = ("_defaults", "_described", "_resolver")

    def __init__(self, resolver: ConfigResolver) -> None:
        self._resolver = resolver
        self._described: list[CreatableTopicConfigs] = []
        self._defaults: object = None

    def describe(self, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Returns the configs of a topic with these overrides, which are valid.

        The caller must not change the list.
        """
        if self._defaults is not self._resolver.topic_defaults:
            self._defaults = self._resolver.topic_defaults
            self._described = [
                CreatableTopicConfigs(
                    name=setting.name,
                    value=setting.value,
                    read_only=setting.read_only,
                    config_source=setting.source,
                    is_sensitive=setting.sensitive,
                )
                for setting in describe_topic(self._resolver, _NO_TOPIC)
            ]
        if not overrides:
            return self._described
        return [
            _overridden(overrides[config.name], config.name) if config.name in overrides else config
            for config in self._described
        ]


class MutationQuota(Protocol):
    """How many partitions a client may create and delete."""

    def record(self, count: int) -> None:
        """Raises THROTTLING_QUOTA_EXCEEDED if the client has to wait."""


@dataclass(slots=True, frozen=True)
class Requester:
    """Who sent a request to the controller."""

    principal: KafkaPrincipal = ANONYMOUS
    mutation_quota: MutationQuota | None = None


NODE: Final = Requester()
"""A node of the cluster, for requests that no decision attributes to a client."""


@dataclass(slots=True, frozen=True)
class ControllerContext:
    """Everything besides the image that a decision may depend on."""

    now_ms: int
    """By a monotonic clock, for durations only."""
    wall_clock_ms: int
    """For timestamps in records."""
    next_offset: int
    cluster_id: str
    controller_id: int
    voter_ids: Collection[int]
    kraft_version: int
    resolver: ConfigResolver
    topic_configs: EffectiveTopicConfigs
    heartbeats: BrokerHeartbeatTracker
    random_uuid: Callable[[], bytes]
    random_below: Callable[[int], int]
    requester: Requester = NODE

    def record_mutations(self, count: int) -> None:
        """Counts partitions that are created or deleted, also if only validated.

        Raises THROTTLING_QUOTA_EXCEEDED if the client is over its quota.
        """
        if self.requester.mutation_quota is not None:
            self.requester.mutation_quota.record(count)


ControllerDecision = Decision[Message, Message, BrokerContact]
"""Records that commit together; the only effect renews the session of a broker."""


def require_record_limit(records: list[Message]) -> None:
    if len(records) > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation: it needs "
            f"{len(records)} metadata records and the limit is {MAX_RECORDS}. "
            "Split it into smaller requests.",
        )


def excessive_partitions(count: int) -> KafkaError:
    """Returns the error for a request that adds more partitions than one batch can have."""
    return KafkaError(
        ErrorCode.POLICY_VIOLATION,
        "Excessively large number of partitions per request. "
        f"It adds {count}, and the limit is {MAX_RECORDS}.",
    )


def default_directory(broker: BrokerRegistration | None) -> bytes:
    """Returns the directory of a new replica; a broker with one directory needs no choice."""
    if broker is not None and len(broker.log_dirs) == 1:
        return broker.log_dirs[0]
    return DirectoryId.UNASSIGNED


_NO_TOPIC = ""  # has no configs of its own, as no topic can have this name


def _overridden(text: str, name: str) -> CreatableTopicConfigs:
    value = to_text(topic.SETTINGS[name].parse(text))
    return CreatableTopicConfigs(name=name, value=value, config_source=SettingSource.TOPIC)
