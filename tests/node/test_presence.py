"""How a broker lives in the eyes of a controller that answers as it is told."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.harness import on_a_loop

from barnabas.node.errors import NodeError
from barnabas.node.presence import Presence
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

INTERVAL_MS = 1


class FakeController:
    def __init__(self, *answers: Any) -> None:
        self.image = SimpleNamespace(offset=42)
        self.asked: list[Any] = []
        self._answers = list(answers)

    async def handle(self, request: Any) -> Any:
        self.asked.append(request)
        return self._answers.pop(0) if self._answers else BrokerHeartbeatResponse()

    async def until_asked(self, kind: type) -> Any:
        while True:
            for request in self.asked:
                if isinstance(request, kind):
                    return request
            await asyncio.sleep(0)


def a_presence(controller: Any) -> Presence:
    return Presence(1, controller, INTERVAL_MS)


def partitions(**unreported: bytes) -> Any:
    directories = [
        SimpleNamespace(directory_id=b"A" * 16, failed=None),
        SimpleNamespace(directory_id=b"B" * 16, failed=OSError()),
    ]
    return SimpleNamespace(
        disks=SimpleNamespace(directories=directories),
        unreported={(name.encode() * 16, 0): directory for name, directory in unreported.items()},
    )


@on_a_loop
async def test_a_registration_gives_the_epoch() -> None:
    presence = a_presence(FakeController(BrokerRegistrationResponse(broker_epoch=7)))
    await presence.register(BrokerRegistrationRequest())
    assert presence.epoch == 7


@on_a_loop
async def test_a_refused_registration_says_why() -> None:
    refusal = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    with pytest.raises(NodeError, match="DUPLICATE_BROKER_REGISTRATION"):
        await a_presence(FakeController(refusal)).register(BrokerRegistrationRequest())


@on_a_loop
async def test_a_broker_that_stays_fenced_does_not_start() -> None:
    controller = FakeController(BrokerHeartbeatResponse(is_fenced=True))
    with pytest.raises(NodeError, match="keeps broker 1 fenced"):
        await a_presence(controller).begin(partitions())


@on_a_loop
async def test_heartbeats_name_failed_directories_and_how_far_the_broker_has_read() -> None:
    controller = FakeController(BrokerHeartbeatResponse(is_fenced=False))
    presence = a_presence(controller)
    await presence.begin(partitions())
    await presence.end()
    (beat,) = controller.asked
    assert isinstance(beat, BrokerHeartbeatRequest)
    assert (beat.current_metadata_offset, beat.offline_log_dirs) == (42, [b"B" * 16])


@on_a_loop
async def test_the_controller_hears_where_partitions_were_put() -> None:
    controller = FakeController(BrokerHeartbeatResponse(is_fenced=False))
    presence = a_presence(controller)
    await presence.begin(partitions(t=b"A" * 16))
    told = await controller.until_asked(AssignReplicasToDirsRequest)
    await presence.end()
    (directory,) = told.directories
    assert (directory.id, directory.topics[0].topic_id) == (b"A" * 16, b"t" * 16)
