"""Electing leaders of partitions."""

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.enums import ElectionType
from barnabas.client.errors import KafkaError
from barnabas.client.values import Partition, TopicPartition


@dataclass(slots=True, frozen=True)
class Elections:
    elected: list[Partition]
    not_needed: list[Partition]
    failures: dict[Partition, KafkaError]


async def elect(
    admin: AioAdminClient, kind: ElectionType, partitions: Iterable[Partition] | None
) -> Elections:
    """Elect leaders of these partitions, or of all that need one."""
    asked = None if partitions is None else [TopicPartition(*each) for each in partitions]
    outcomes = {
        (each.topic, each.partition): error
        for each, error in sorted((await admin.elect_leaders(kind, asked)).items())
    }
    return Elections(
        elected=[each for each, error in outcomes.items() if error is None],
        not_needed=[
            each for each, error in outcomes.items() if error == KafkaError.ELECTION_NOT_NEEDED
        ],
        failures={
            each: error
            for each, error in outcomes.items()
            if error is not None and error != KafkaError.ELECTION_NOT_NEEDED
        },
    )
