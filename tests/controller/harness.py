"""A controller on a fake quorum, which commits when the test says so, in simulated time."""

import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tests.controller.conftest import CLUSTER_ID, error_response_to, settings
from tests.simulation.world.clock import SimulatedLoop

from barnabas.controller.quorum_controller import QuorumController
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import SUPPORTED
from barnabas.metadata.frames import decode_record
from barnabas.metadata.image import MetadataImage, MetadataLoader
from barnabas.raft import VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.registrations import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    Feature,
)
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.schema import Message


class FakeQuorum:
    """Appends to a list; `leads_in` is the epoch it leads in, None when it follows."""

    kraft_version = 1
    voters = VoterSet((VoterNode(1, b"v" * 16, ()),))

    def __init__(self) -> None:
        self.leads_in: int | None = None
        self.batches: list[tuple[int, int, list[Message]]] = []
        self.end_offset = 0
        self.disk_failure: OSError | None = None

    def append(self, frames: Sequence[bytes], epoch: int, now_ms: int) -> int:
        if self.disk_failure is not None:
            raise self.disk_failure
        if epoch != self.leads_in:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        self.end_offset += len(frames)
        records = [decode_record(frame) for frame in frames]
        self.batches.append((self.end_offset - 1, epoch, records))
        return self.end_offset - 1


class ControllerHarness:
    """One node's controller, quorum and committed image."""

    def __init__(self, **overrides: str) -> None:
        self.loop = SimulatedLoop()
        self.quorum = FakeQuorum()
        self.image = MetadataImage()
        self.loader = MetadataLoader(self.image)
        self.published: list[int] = []
        self.clock_ahead_ms = 0
        """By how much the wall clock was changed."""
        self.controller = QuorumController(
            self.quorum,
            settings(**overrides),
            cluster_id=CLUSTER_ID,
            clock=lambda: self.loop.now_ms + self.clock_ahead_ms,
            monotonic=lambda: self.loop.now_ms,
            image=lambda: self.image,
            random=random.Random(1),
        )
        self._committed = 0

    def lead(self, epoch: int, bootstrap: Sequence[bytes] = ()) -> None:
        self.quorum.leads_in = epoch
        self.controller.activate(epoch, bootstrap)

    def follow(self) -> None:
        self.quorum.leads_in = None
        self.controller.resign()

    def commit(self) -> None:
        """Commits and publishes everything that was appended."""
        while self._committed < len(self.quorum.batches):
            last_offset, epoch, records = self.quorum.batches[self._committed]
            self._committed += 1
            self.loader.load(records, last_offset, epoch, MetadataDelta())
        self.controller.on_published(self.quorum.end_offset - 1)

    def lose_uncommitted(self) -> None:
        """Another node leads now, and its log does not have what this one appended last."""
        del self.quorum.batches[self._committed :]
        last_offset = self.quorum.batches[-1][0] if self.quorum.batches else -1
        self.quorum.end_offset = last_offset + 1

    def run(self, scenario: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return self.loop.run_until_complete(scenario())
        finally:
            self.loop.close()

    async def handle(self, request: Message) -> Any:
        """The response to a request, as the server derives it if the request fails."""
        try:
            return await self.controller.handle(request)
        except KafkaError as error:
            return error_response_to(request, error)

    async def send(self, request: Message) -> Any:
        """Sends a request and commits its records at once. Returns the response."""
        pending = self.loop.create_task(self.handle(request))
        await self.turn()
        self.commit()
        return await pending

    async def turn(self) -> None:
        """Runs everything that is due now."""
        turned = self.loop.create_future()
        self.loop.call_soon(self.loop.call_soon, turned.set_result, None)
        await turned

    async def pass_ms(self, duration_ms: int) -> None:
        passed = self.loop.create_future()
        self.loop.call_later(duration_ms / 1000, passed.set_result, None)
        await passed

    async def join(self, *broker_ids: int) -> None:
        """Registers and unfences brokers."""
        for broker_id in broker_ids:
            await self.send(registration(broker_id))
            await self.beat(broker_id)

    async def beat(self, broker_id: int, **wants: Any) -> Any:
        return await self.send(
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=self.image.brokers[broker_id].epoch,
                current_metadata_offset=self.image.offset,
                **wants,
            )
        )


def registration(broker_id: int) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=bytes([broker_id]) * 16,
        features=[
            Feature(name=name, min_supported_version=item.min, max_supported_version=item.max)
            for name, item in SUPPORTED.items()
        ],
        log_dirs=[bytes([100 + broker_id]) * 16],
    )


def creation(name: str, partitions: int = 1, replicas: int = 1) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    return CreateTopicsRequest(topics=[topic])
