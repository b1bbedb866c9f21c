"""An admin client that keeps changing topics, replicas, leaders and settings."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.simulation.cluster.clients.client import Client

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.wire.schema import Message

PREFERRED = 0
TOPIC = 2
SET = 0
TIMEOUT_MS = 3_000
MAX_TOPICS = 3


class Admin(Client):
    """Sends requests to any broker, which forwards them to the controller."""

    def __init__(self, world: Any, name: str) -> None:
        super().__init__(world, name)
        self.topics: list[str] = []

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(0.2, 2.5))
            await self.refresh_metadata()
            await self._try(self._next_request())

    async def create(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> None:
        """Creates a topic, with retries until it exists."""
        self.topics.append(name)
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=3,
            configs=[
                CreatableTopicConfig(name=config, value=value)
                for config, value in (configs or {}).items()
            ],
        )
        while True:
            response = await self._try(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS))
            done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            if response is not None and response.topics[0].error_code in done:
                return
            await self.back_off()

    async def move_leader(self, topic: str, index: int, replicas: list[int]) -> None:
        """Makes the first of the replicas the preferred leader, and elects it."""
        await self._try(_reassignment(topic, index, replicas))
        await self._try(_preferred_election(topic, index))

    async def change_config(self, topic: str) -> None:
        """Changes a setting of a topic to something else."""
        await self._try(self._new_config(topic))

    def _next_request(self) -> Message:
        partitions = sorted(
            self.metadata.partitions.values(),
            key=lambda partition: (partition.topic, partition.key[1]),
        )
        choice = self.random.random()
        if not partitions or (choice < 0.15 and len(self.topics) < MAX_TOPICS):
            return self._new_topic()
        partition = self.random.choice(partitions)
        topic, index = partition.topic, partition.key[1]
        if choice < 0.5:
            brokers = self.random.sample(self.world.layout.brokers, 3)
            return _reassignment(topic, index, None if self.random.random() < 0.2 else brokers)
        if choice < 0.8:
            return _preferred_election(topic, index)
        return self._new_config(topic)

    def _new_config(self, topic: str) -> Message:
        config = IncrementalAlterableConfig(
            name="max.message.bytes",
            config_operation=SET,
            value=str(self.random.randint(100_000, 200_000)),
        )
        resource = IncrementalAlterConfigsResource(
            resource_type=TOPIC, resource_name=topic, configs=[config]
        )
        return IncrementalAlterConfigsRequest(resources=[resource])

    def _new_topic(self) -> Message:
        name = f"topic-{len(self.topics)}"
        self.topics.append(name)
        topic = CreatableTopic(
            name=name, num_partitions=self.random.randint(1, 2), replication_factor=3
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)

    async def _try(self, request: Message) -> Any:
        broker = self.random.choice(self.world.layout.brokers)
        try:
            response = await self.send_request(broker, request, TIMEOUT_MS)
        except OSError as failure:
            self.world.events.note(self.name, f"{type(request).__name__}: {type(failure).__name__}")
            return None
        self.world.events.note(self.name, f"{type(request).__name__} gets a response")
        return response


def _reassignment(topic: str, index: int, replicas: list[int] | None) -> Message:
    """Reassigns to these replicas, or cancels the current reassignment."""
    reassignment = ReassignablePartition(partition_index=index, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS, topics=[ReassignableTopic(name=topic, partitions=[reassignment])]
    )


def _preferred_election(topic: str, index: int) -> Message:
    return ElectLeadersRequest(
        election_type=PREFERRED,
        topic_partitions=[TopicPartitions(topic=topic, partitions=[index])],
        timeout_ms=TIMEOUT_MS,
    )
