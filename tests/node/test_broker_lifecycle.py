"""A broker registers, sends heartbeats and shuts down, with a controller that a test scripts."""

import asyncio
import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.log_records import barnabas_log_records
from tests.server.harness import on_a_loop

from barnabas.metadata.delta import MetadataDelta
from barnabas.node.broker_lifecycle import BrokerLifecycle
from barnabas.node.errors import NodeError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.registrations import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Listener,
)

INTERVAL_MS = 1


class FakeController:
    """Returns the given responses in order, then unfences the broker."""

    def __init__(self, *responses: Any) -> None:
        self.requests: list[Any] = []
        self._responses = list(responses)

    async def handle(self, request: Any, *, timeout_ms: int = 0) -> Any:
        self.requests.append(request)
        return (
            self._responses.pop(0) if self._responses else BrokerHeartbeatResponse(is_fenced=False)
        )

    async def until_requested(self, kind: type) -> Any:
        while True:
            for request in self.requests:
                if isinstance(request, kind):
                    return request
            await asyncio.sleep(0)


def a_lifecycle(
    controller: Any,
    *,
    registration_timeout_ms: int = 60_000,
    interval_ms: int = INTERVAL_MS,
    broker_ids: Sequence[int] = (1, 2),
    cordoned: Sequence[bytes] = (),
    registered_cordoned: tuple[bytes, ...] | None = None,
    **unassigned: bytes,
) -> BrokerLifecycle:
    settings: Any = Settings(registration_timeout_ms, interval_ms)
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
    image.brokers[1].cordoned_log_dirs = registered_cordoned
    return BrokerLifecycle(settings, controller, lambda: image, partitions)


def an_image(*broker_ids: int, leaving: int | None = None) -> Any:
    brokers = {
        broker_id: SimpleNamespace(
            broker_id=broker_id,
            active=True,
            in_controlled_shutdown=broker_id == leaving,
            cordoned_log_dirs=None,
        )
        for broker_id in (*broker_ids, *([leaving] if leaving is not None else []))
    }
    return SimpleNamespace(offset=42, brokers=brokers, metadata_level=30)


OWN_REQUEST = BrokerRegistrationRequest(
    broker_id=1,
    incarnation_id=b"o" * 16,
    listeners=[Listener(name="PLAINTEXT", host="one", port=9092)],
    log_dirs=[b"A" * 16],
)


def registered(*, epoch: int, incarnation_id: bytes, port: int) -> Any:
    """An image in which a process is registered as broker 1."""
    broker = SimpleNamespace(
        epoch=epoch,
        incarnation_id=incarnation_id,
        log_dirs=(b"A" * 16,),
        endpoints=[SimpleNamespace(name="PLAINTEXT", host="one", port=port)],
    )
    return SimpleNamespace(brokers={1: broker})


class Settings(dict[str, int]):
    node_id = 1

    def __init__(self, registration_timeout_ms: int, interval_ms: int) -> None:
        super().__init__(
            {
                "broker.heartbeat.interval.ms": interval_ms,
                "initial.broker.registration.timeout.ms": registration_timeout_ms,
            }
        )


@on_a_loop
async def test_a_registered_broker_has_the_epoch_of_the_response() -> None:
    lifecycle = a_lifecycle(FakeController(BrokerRegistrationResponse(broker_epoch=7)))
    await lifecycle.register(BrokerRegistrationRequest())
    assert lifecycle.epoch == 7


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "format it for theirs"),
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another node.id"),
        (ErrorCode.NOT_CONTROLLER, "a majority of the controllers running"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "super.users on all nodes"),
        (ErrorCode.INVALID_REGISTRATION, "INVALID_REGISTRATION"),
    ],
)
@on_a_loop
async def test_a_registration_that_fails_until_the_timeout_raises_with_advice(
    code: ErrorCode, advice: str
) -> None:
    controller = FakeController(BrokerRegistrationResponse(error_code=code))
    with pytest.raises(NodeError, match=advice):
        await a_lifecycle(controller, registration_timeout_ms=0).register(
            BrokerRegistrationRequest()
        )


@on_a_loop
async def test_a_broker_that_was_just_restarted_retries_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    duplicate = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    lifecycle = a_lifecycle(FakeController(duplicate, BrokerRegistrationResponse(broker_epoch=7)))
    await lifecycle.register(BrokerRegistrationRequest())
    assert lifecycle.epoch == 7
    assert not barnabas_log_records(caplog, logging.WARNING)


@on_a_loop
async def test_a_broker_sends_heartbeats_until_it_is_unfenced() -> None:
    controller = FakeController(BrokerHeartbeatResponse(is_fenced=True))
    lifecycle = a_lifecycle(controller)
    await lifecycle.wait_until_unfenced()
    assert len(controller.requests) == 2


@on_a_loop
async def test_a_broker_that_was_replaced_before_it_was_unfenced_registers_again() -> None:
    controller = FakeController(
        BrokerRegistrationResponse(broker_epoch=7),
        BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        BrokerRegistrationResponse(broker_epoch=9),
    )
    lifecycle = a_lifecycle(controller)
    await lifecycle.register(OWN_REQUEST)
    await lifecycle.wait_until_unfenced()
    assert lifecycle.epoch == controller.requests[-1].broker_epoch == 9


@on_a_loop
async def test_a_broker_registers_again_if_an_earlier_process_of_it_registered_late() -> None:
    controller = FakeController(
        BrokerRegistrationResponse(broker_epoch=7),
        BrokerHeartbeatResponse(is_fenced=False),
        BrokerRegistrationResponse(error_code=ErrorCode.INVALID_REGISTRATION),
        BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        BrokerRegistrationResponse(broker_epoch=9),
    )
    lifecycle = a_lifecycle(controller)
    await lifecycle.register(OWN_REQUEST)
    await lifecycle.wait_until_unfenced()
    lifecycle.check_registration(registered(epoch=8, incarnation_id=b"e" * 16, port=9092))
    while lifecycle.epoch != 9:
        await asyncio.sleep(0)
    lifecycle.check_registration(registered(epoch=9, incarnation_id=b"o" * 16, port=9092))
    assert controller.requests.count(OWN_REQUEST) == 3


@on_a_loop
async def test_a_broker_stops_if_another_process_with_other_listeners_is_registered() -> None:
    lifecycle = a_lifecycle(FakeController(BrokerRegistrationResponse(broker_epoch=7)))
    await lifecycle.register(OWN_REQUEST)
    with pytest.raises(NodeError, match="stop one of them"):
        lifecycle.check_registration(registered(epoch=8, incarnation_id=b"e" * 16, port=9999))


@on_a_loop
async def test_heartbeats_contain_offline_directories_and_the_metadata_offset() -> None:
    controller = FakeController()
    lifecycle = a_lifecycle(controller)
    await lifecycle.wait_until_unfenced()
    heartbeat = controller.requests[0]
    assert isinstance(heartbeat, BrokerHeartbeatRequest)
    assert (heartbeat.current_metadata_offset, heartbeat.offline_log_dirs) == (42, [b"B" * 16])


@pytest.mark.parametrize(
    ("registered", "cordoned", "reported"),
    [
        (None, [], None),
        (None, [b"A" * 16], [b"A" * 16]),
        ((b"A" * 16,), [], []),
    ],
)
@on_a_loop
async def test_heartbeats_contain_cordoned_directories_until_the_metadata_has_none(
    registered: tuple[bytes, ...] | None, cordoned: list[bytes], reported: list[bytes] | None
) -> None:
    controller = FakeController()
    lifecycle = a_lifecycle(controller, cordoned=cordoned, registered_cordoned=registered)
    await lifecycle.wait_until_unfenced()
    assert controller.requests[0].cordoned_log_dirs == reported


@on_a_loop
async def test_a_controlled_shutdown_ends_when_the_controller_allows_it() -> None:
    still_leading = BrokerHeartbeatResponse(is_fenced=False)
    controller = FakeController(still_leading, BrokerHeartbeatResponse(should_shut_down=True))
    await a_lifecycle(controller).controlled_shutdown()
    assert [request.want_shut_down for request in controller.requests] == [True, True]


@on_a_loop
async def test_the_only_broker_shuts_down_without_a_request() -> None:
    controller = FakeController()
    await a_lifecycle(controller, broker_ids=[1]).controlled_shutdown()
    assert not controller.requests


@on_a_loop
async def test_a_controlled_shutdown_ends_without_a_controller_too() -> None:
    controller = FakeController(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
    await a_lifecycle(controller).controlled_shutdown()
    assert len(controller.requests) == 1


@on_a_loop
async def test_a_broker_sends_a_heartbeat_at_once_when_another_begins_to_shut_down() -> None:
    controller = FakeController()
    lifecycle = a_lifecycle(controller, interval_ms=60_000)
    await lifecycle.wait_until_unfenced()
    lifecycle.on_metadata_change(MetadataDelta(brokers_changed={2}), an_image(leaving=2))
    while len(controller.requests) < 2:
        await asyncio.sleep(0)


@on_a_loop
async def test_a_broker_reports_the_directories_of_its_replicas() -> None:
    controller = FakeController()
    lifecycle = a_lifecycle(controller, t=b"A" * 16)
    await lifecycle.wait_until_unfenced()
    request = await controller.until_requested(AssignReplicasToDirsRequest)
    (directory,) = request.directories
    assert (directory.id, directory.topics[0].topic_id) == (b"A" * 16, b"t" * 16)
