"""Creates a compacted topic that a service keeps its state in, or verifies an existing one."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.configs import ConfigResource
from barnabas.client.admin.topics import NewTopic
from barnabas.client.backoff import Deadline
from barnabas.client.errors import KafkaError, KafkaException, error_in

_log = logging.getLogger(__name__)
_RETRY_PAUSE_S = 0.2
_LIST_TIMEOUT_S = 2  # after which the log says that no broker responds
_BROKER_DEFAULT = -1
_NOT_READABLE = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)


class TopicError(Exception):
    """The topic cannot hold the state. The message says what to change."""


@dataclass(slots=True, frozen=True)
class CompactedTopic:
    """What a service needs of a topic."""

    name: str
    content: str
    """What the records are, in messages: "schemas"."""
    partitions: int = 1
    """Of a new topic; -1 for the brokers' default. An existing one may have another number."""
    is_single_partition: bool = False
    """Whether an existing topic must have one partition."""
    replication_factor: int = 3
    """At most the number of brokers; -1 for their default."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Further configs of a new topic."""


async def prepare_compacted_topic(
    client_config: Mapping[str, object],
    topic: CompactedTopic,
    *,
    start_timeout_ms: int,
    timeout_ms: int,
) -> None:
    """Ensures that the topic exists and is compacted. Raises TopicError if that is impossible.

    It waits for brokers for `start_timeout_ms`.
    """
    deadline = Deadline.after(start_timeout_ms)
    has_logged = False
    async with AioAdminClient(dict(client_config)) as admin:
        while True:
            try:
                await _create_or_verify(admin, topic, timeout_ms)
                return
            except KafkaException as failure:
                error = error_in(failure)
                if not error.retriable() or deadline.has_passed:
                    raise TopicError(
                        f"Topic {topic.name} could not be made ready: {error.str()}"
                    ) from failure
                if not has_logged:
                    _log.warning("waiting for brokers: %s", error.str())
                has_logged = True
            await asyncio.sleep(_RETRY_PAUSE_S)


async def _create_or_verify(admin: AioAdminClient, topic: CompactedTopic, timeout_ms: int) -> None:
    cluster = await admin.list_topics(timeout=_LIST_TIMEOUT_S)
    if cluster.topics.get(topic.name) is None:
        replicas = topic.replication_factor
        if replicas != _BROKER_DEFAULT:
            replicas = max(1, min(replicas, len(cluster.brokers)))
        configs = {**topic.configs, "cleanup.policy": "compact"}
        new = NewTopic(topic.name, topic.partitions, replicas, config=configs)
        try:
            (await admin.create_topics([new]))[topic.name]
            return
        except KafkaException as failure:
            if error_in(failure).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    await _verify(admin, topic, timeout_ms)


async def _verify(admin: AioAdminClient, topic: CompactedTopic, timeout_ms: int) -> None:
    cluster = await admin.list_topics(topic.name, timeout=timeout_ms / 1000)
    partitions = cluster.topics[topic.name].partitions
    if topic.is_single_partition and len(partitions) > 1:
        raise TopicError(
            f"Topic {topic.name} has {len(partitions)} partitions, and {topic.content} need "
            "exactly 1: name another topic."
        )
    policy = await _cleanup_policy(admin, topic.name)
    if policy not in (None, "compact"):
        raise TopicError(
            f"Topic {topic.name} has cleanup.policy={policy} and would lose {topic.content} by "
            f"age: set it to compact (barnabas configs alter topic {topic.name} "
            "--set cleanup.policy=compact)."
        )
    for partition in partitions.values():
        if len(partition.replicas) < min(topic.replication_factor, len(cluster.brokers)):
            _log.warning(
                "topic %s has %d replicas, fewer than the configured %d",
                topic.name,
                len(partition.replicas),
                topic.replication_factor,
            )
            return


async def _cleanup_policy(admin: AioAdminClient, name: str) -> str | None:
    """Returns None if the principal is not allowed to read it."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    try:
        configs = (await admin.describe_configs([resource]))[resource]
    except KafkaException as failure:
        error = error_in(failure)
        if error.code() not in _NOT_READABLE:
            raise
        _log.warning("cleanup.policy of topic %s is not verified: %s", name, error.str())
        return None
    policy: str | None = configs["cleanup.policy"].value
    return policy
