"""Creates the `_schemas` topic, or verifies that an existing one cannot lose schemas."""

import asyncio
import logging

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.configs import ConfigResource
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)
_RETRY_PAUSE_S = 0.2
_LIST_TIMEOUT_S = 2  # after which the log says that no broker responds


class TopicError(Exception):
    """The topic cannot hold schemas. The message says what to change."""


async def prepare_topic(settings: RegistrySettings) -> None:
    """Ensures a compacted topic with one partition. Raises TopicError if that is not possible."""
    deadline = Deadline.after(settings.start_timeout_ms)
    has_logged = False
    async with AioAdminClient(settings.kafka_client_config) as admin:
        while True:
            try:
                await _create_or_verify(admin, settings)
                return
            except KafkaException as failure:
                error = error_in(failure)
                if not error.retriable() or deadline.has_passed:
                    raise TopicError(
                        f"Topic {settings.topic} could not be made ready: {error.str()}"
                    ) from failure
                if not has_logged:
                    _log.warning("waiting for brokers: %s", error.str())
                has_logged = True
            await asyncio.sleep(_RETRY_PAUSE_S)


async def _create_or_verify(admin: AioAdminClient, settings: RegistrySettings) -> None:
    cluster = await admin.list_topics(timeout=_LIST_TIMEOUT_S)
    topic = cluster.topics.get(settings.topic)
    if topic is None:
        replicas = max(1, min(settings.replication_factor, len(cluster.brokers)))
        new = NewTopic(settings.topic, 1, replicas, config={"cleanup.policy": "compact"})
        try:
            (await admin.create_topics([new]))[settings.topic]
            return
        except KafkaException as failure:
            if error_in(failure).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    await _verify(admin, settings)


async def _verify(admin: AioAdminClient, settings: RegistrySettings) -> None:
    cluster = await admin.list_topics(settings.topic, timeout=settings.timeout_ms / 1000)
    partitions = len(cluster.topics[settings.topic].partitions)
    if partitions > 1:
        raise TopicError(
            f"Topic {settings.topic} has {partitions} partitions, and schemas need exactly 1: "
            "name another topic."
        )
    resource = ConfigResource(ConfigResource.Type.TOPIC, settings.topic)
    configs = (await admin.describe_configs([resource]))[resource]
    policy = configs["cleanup.policy"].value
    if policy != "compact":
        raise TopicError(
            f"Topic {settings.topic} has cleanup.policy={policy} and would lose schemas by age: "
            f"set it to compact (barnabas configs alter topic {settings.topic} "
            "--set cleanup.policy=compact)."
        )
    for partition in cluster.topics[settings.topic].partitions.values():
        if len(partition.replicas) < min(settings.replication_factor, len(cluster.brokers)):
            _log.warning(
                "topic %s has %d replicas, fewer than the configured %d",
                settings.topic,
                len(partition.replicas),
                settings.replication_factor,
            )
