"""Offsets of partitions: where a log begins and ends, and what was written when."""

from collections.abc import Iterable, Mapping

from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.model import TopicCollection
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.errors import KafkaError
from barnabas.client.values import Partition, TopicPartition


async def partitions_of(admin: AioAdminClient, topics: Iterable[str]) -> list[Partition]:
    """All partitions of topics; KafkaException if there is no such topic."""
    names = list(dict.fromkeys(topics))
    if not names:
        return []
    described = (await admin.describe_topics(TopicCollection(names))).all()
    return [(name, each.id) for name in names for each in described[name].partitions]


async def offsets_at(
    admin: AioAdminClient, partitions: Iterable[Partition], spec: OffsetSpec
) -> dict[Partition, int]:
    """The offset of each; -1 where nothing is like that. KafkaException for the first failure."""
    offsets, failures = await try_offsets_at(admin, partitions, spec)
    for failure in failures.values():
        raise_error(failure)
    return offsets


async def try_offsets_at(
    admin: AioAdminClient, partitions: Iterable[Partition], spec: OffsetSpec
) -> tuple[dict[Partition, int], Mapping[Partition, KafkaError]]:
    """Those that could be told, and why the others could not."""
    asked = {TopicPartition(topic, index): spec for topic, index in partitions}
    if not asked:
        return {}, {}
    told = await admin.list_offsets(asked)
    failures = {(each.topic, each.partition): error for each, error in told.errors.items()}
    offsets = {
        (each.topic, each.partition): told[each].offset for each in told if each not in told.errors
    }
    return offsets, failures


def raise_error(error: KafkaError) -> None:
    from barnabas.client.errors import KafkaException

    raise KafkaException(error)
