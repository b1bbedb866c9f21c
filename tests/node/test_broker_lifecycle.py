"""How a broker lives in the eyes of a controller that answers as it is told."""

import asyncio
import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.logged import logged
from tests.server.harness import on_a_loop

from barnabas.metadata.delta import MetadataDelta
from barnabas.node.errors import NodeError
from barnabas.node.broker_lifecycle import BrokerLifecycle
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
    """Answers as it was told, and lets the broker in where it was told nothing."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[Any] = []
        self._answers = list(answers)

    async def handle(self, request: Any, *, timeout_ms: int = 0) -> Any:
        self.asked.append(request)
        return self._answers.pop(0) if self._answers else BrokerHeartbeatResponse(is_fenced=False)

    async def until_asked(self, kind: type) -> Any:
        while True:
            for request in self.asked:
                if isinstance(request, kind):
                    return request
            await asyncio.sleep(0)


def a_presence(
    controller: Any,
    *,
    patience_ms: int = 60_000,
    interval_ms: int = INTERVAL_MS,
    broker_ids: Sequence[int] = (1, 2),
    cordoned: Sequence[bytes] = (),
    known_cordoned: tuple[bytes, ...] | None = None,
    **unassigned: bytes,
) -> BrokerLifecycle:
    settings: Any = Settings(patience_ms, interval_ms)
    partitions: Any = SimpleNamespace(
        log_dirs=SimpleNamespace(
            directories=[
                SimpleNamespace(directory_id=b"A" * 16, failed=None),
                SimpleNamespace(directory_id=b"B" * 16, failed=OSError()),
            ],
            cordoned_ids=cordoned,
        ),
        unassigned_dirs={
            (name.encode() * 16, 0): directory for name, directory in unassigned.items()
        },
    )
    image = an_image(*broker_ids)
    image.brokers[1].cordoned_log_dirs = known_cordoned
    return BrokerLifecycle(settings, controller, lambda: image, partitions)


def an_image(*broker_ids: int, leaving: int | None = None) -> Any:
    brokers = {
        each: SimpleNamespace(
            broker_id=each,
            active=True,
            in_controlled_shutdown=each == leaving,
            cordoned_log_dirs=None,
        )
        for each in (*broker_ids, *([leaving] if leaving is not None else []))
    }
    return SimpleNamespace(offset=42, brokers=brokers, metadata_level=30)


class Settings(dict[str, int]):
    node_id = 1

    def __init__(self, patience_ms: int, interval_ms: int) -> None:
        super().__init__(
            {
                "broker.heartbeat.interval.ms": interval_ms,
                "initial.broker.registration.timeout.ms": patience_ms,
            }
        )


@on_a_loop
async def test_a_registration_gives_the_epoch() -> None:
    presence = a_presence(FakeController(BrokerRegistrationResponse(broker_epoch=7)))
    await presence.register(BrokerRegistrationRequest())
    assert presence.epoch == 7


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "format it for theirs"),
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another node.id"),
        (ErrorCode.NOT_CONTROLLER, "a majority of them running"),
        (ErrorCode.INVALID_REGISTRATION, "INVALID_REGISTRATION"),
    ],
)
@on_a_loop
async def test_a_registration_refused_for_too_long_says_what_to_do(
    code: ErrorCode, advice: str
) -> None:
    controller = FakeController(BrokerRegistrationResponse(error_code=code))
    with pytest.raises(NodeError, match=advice):
        await a_presence(controller, patience_ms=0).register(BrokerRegistrationRequest())


@on_a_loop
async def test_who_was_just_restarted_asks_again_without_alarm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusal = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    presence = a_presence(FakeController(refusal, BrokerRegistrationResponse(broker_epoch=7)))
    await presence.register(BrokerRegistrationRequest())
    assert presence.epoch == 7
    assert not logged(caplog, logging.WARNING)


@on_a_loop
async def test_a_broker_asks_until_it_is_let_in() -> None:
    controller = FakeController(BrokerHeartbeatResponse(is_fenced=True))
    presence = a_presence(controller)
    await presence.wait_until_unfenced()
    assert len(controller.asked) == 2


@on_a_loop
async def test_heartbeats_name_failed_directories_and_how_far_the_broker_has_read() -> None:
    controller = FakeController()
    presence = a_presence(controller)
    await presence.wait_until_unfenced()
    beat = controller.asked[0]
    assert isinstance(beat, BrokerHeartbeatRequest)
    assert (beat.current_metadata_offset, beat.offline_log_dirs) == (42, [b"B" * 16])


@pytest.mark.parametrize(
    ("known", "cordoned", "told"),
    [
        (None, [], None),
        (None, [b"A" * 16], [b"A" * 16]),
        ((b"A" * 16,), [], []),
    ],
)
@on_a_loop
async def test_heartbeats_name_cordoned_directories_until_the_controller_knows_there_are_none(
    known: tuple[bytes, ...] | None, cordoned: list[bytes], told: list[bytes] | None
) -> None:
    controller = FakeController()
    presence = a_presence(controller, cordoned=cordoned, known_cordoned=known)
    await presence.wait_until_unfenced()
    assert controller.asked[0].cordoned_log_dirs == told


@on_a_loop
async def test_a_broker_leaves_when_the_controller_lets_it_go() -> None:
    still_leading = BrokerHeartbeatResponse(is_fenced=False)
    controller = FakeController(still_leading, BrokerHeartbeatResponse(should_shut_down=True))
    await a_presence(controller).controlled_shutdown()
    assert [beat.want_shut_down for beat in controller.asked] == [True, True]


@on_a_loop
async def test_a_broker_alone_has_nothing_to_hand_over() -> None:
    controller = FakeController()
    await a_presence(controller, broker_ids=[1]).controlled_shutdown()
    assert not controller.asked


@on_a_loop
async def test_a_broker_leaves_without_a_controller_too() -> None:
    controller = FakeController(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
    await a_presence(controller).controlled_shutdown()
    assert len(controller.asked) == 1


@on_a_loop
async def test_a_broker_that_leaves_need_not_wait_for_the_others_next_heartbeat() -> None:
    controller = FakeController()
    presence = a_presence(controller, interval_ms=60_000)
    await presence.wait_until_unfenced()
    presence.on_metadata_change(MetadataDelta(brokers_changed={2}), an_image(leaving=2))
    while len(controller.asked) < 2:
        await asyncio.sleep(0)


@on_a_loop
async def test_the_controller_hears_where_partitions_were_put() -> None:
    controller = FakeController()
    presence = a_presence(controller, t=b"A" * 16)
    await presence.wait_until_unfenced()
    told = await controller.until_asked(AssignReplicasToDirsRequest)
    (directory,) = told.directories
    assert (directory.id, directory.topics[0].topic_id) == (b"A" * 16, b"t" * 16)
