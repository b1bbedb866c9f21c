"""A question reaches the active controller, wherever that is by the time it can be asked."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.controller_api.fake_controller import FakeControllerListener
from tests.simulation.clock import SimulatedLoop

from barnabas.node.controller_channel import ControllerChannel
from barnabas.raft import QuorumLeader
from barnabas.server.request_context import RequestContext
from barnabas.server.envelopes import read_client_host, read_principal, encode_response
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.headers import read_request_header
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.schema import Message

HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, broker_epoch=5)
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")], timeout_ms=5)
TWO = QuorumLeader(2, 7, "10.0.0.2", 19093)
THREE = QuorumLeader(3, 8, "10.0.0.3", 19093)


class Lines:
    """Peers whose answers are what a test makes of their requests; None is no answer at all."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Message]] = []
        self.answers: dict[str, Callable[[Message], Message | OSError | None]] = {}

    def at(self, host: str, port: int, purpose: str) -> Any:
        def send(request: Message, timeout_ms: int, answered: Callable[[Any], None]) -> None:
            self.asked.append((host, purpose, request))
            outcome = self.answers[host](request)
            loop = asyncio.get_running_loop()
            if outcome is None:
                loop.call_later(timeout_ms / 1000, answered, TimeoutError(errno.ETIMEDOUT, "late"))
            else:
                loop.call_soon(answered, outcome)

        return SimpleNamespace(send=send)


class World:
    """Node 1, which asks, and what it knows of the others."""

    def __init__(self) -> None:
        self.quorum = SimpleNamespace(leader=TWO)  # as this node knows it
        self.lines = Lines()
        self.local: Any = None
        self.loop = asyncio.get_running_loop()

    @property
    def channel(self) -> ControllerChannel:
        quorum: Any = self.quorum
        return ControllerChannel(1, quorum, self.local, self.lines)

    def later(self, delay_s: float, **changes: Any) -> None:
        self.loop.call_later(delay_s, lambda: vars(self.quorum).update(changes))


def on_simulated_time(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    loop = SimulatedLoop()

    async def run() -> None:
        await scenario(World())

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


def a_call(version: int = 7) -> RequestContext:
    connection: Any = SimpleNamespace(host="10.0.0.9", principal="User:alice", listener="PLAINTEXT")
    nothing: Any = None
    return RequestContext(version, 77, "abc", connection, nothing, 0, 0)


def an_answer(**fields: Any) -> Callable[[Message], Message]:
    return lambda request: api(request.API_KEY).response(**fields)


def opening(answer: Callable[[Message], Message]) -> Callable[[Message], Message]:
    """A controller that opens envelopes and seals its answers."""

    def handle(envelope: Any) -> Message:
        header, body = read_request_header(envelope.request_data)
        request = api(header.api_key).request.read_exactly(
            envelope.request_data, header.api_version, body
        )
        return EnvelopeResponse(response_data=encode_response(answer(request), header))

    return handle


# What this node asks


def test_the_leader_of_the_quorum_is_asked() -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = an_answer(is_fenced=False)
        response = await world.channel.handle(HEARTBEAT, timeout_ms=4500)
        assert response == BrokerHeartbeatResponse(is_fenced=False)
        assert world.lines.asked == [("10.0.0.2", "lifecycle", HEARTBEAT)]

    on_simulated_time(scenario)


def test_heartbeats_do_not_wait_behind_anything_else() -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = an_answer()
        await world.channel.handle(AlterPartitionRequest())
        await world.channel.handle(HEARTBEAT)
        assert [purpose for _, purpose, _ in world.lines.asked] == ["controller", "lifecycle"]

    on_simulated_time(scenario)


def test_the_controller_of_this_node_is_asked_while_it_is_active() -> None:
    async def scenario(world: World) -> None:
        world.local = (house := FakeControllerListener()).node
        response = await world.channel.handle(AlterPartitionRequest(), timeout_ms=44)
        assert isinstance(response, AlterPartitionResponse)
        assert house.controller.requests == [(AlterPartitionRequest(), 44)]
        assert world.lines.asked == []

    on_simulated_time(scenario)


def test_a_standby_is_left_for_the_new_leader() -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = an_answer(error_code=ErrorCode.NOT_CONTROLLER)
        world.lines.answers["10.0.0.3"] = an_answer()
        world.later(0.2, leader=THREE)
        response = await world.channel.handle(HEARTBEAT, timeout_ms=4500)
        assert response.error_code == ErrorCode.NONE
        assert world.lines.asked[-1][0] == "10.0.0.3"
        assert world.loop.time() < 0.3

    on_simulated_time(scenario)


@pytest.mark.parametrize("lost", [ConnectionRefusedError, ConnectionResetError, TimeoutError])
def test_who_is_lost_is_left_for_the_new_leader(lost: type[OSError]) -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = lambda _: lost("gone")
        world.lines.answers["10.0.0.3"] = an_answer()
        world.later(0.2, leader=THREE)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert world.loop.time() < 0.3

    on_simulated_time(scenario)


def test_who_is_silent_is_left_as_soon_as_another_leads() -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = lambda _: None
        world.lines.answers["10.0.0.3"] = an_answer()
        world.later(1.0, leader=None)
        world.later(2.0, leader=THREE)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert [host for host, *_ in world.lines.asked] == ["10.0.0.2", "10.0.0.3"]
        assert world.loop.time() < 2.3

    on_simulated_time(scenario)


def test_while_nobody_leads_a_question_waits() -> None:
    async def scenario(world: World) -> None:
        world.quorum.leader = None
        world.lines.answers["10.0.0.3"] = an_answer()
        world.later(3.0, leader=THREE)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert world.loop.time() < 3.1

    on_simulated_time(scenario)


def test_a_leader_that_is_not_active_yet_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        world.local = (house := FakeControllerListener()).node
        house.controller.is_active = False
        world.quorum.leader = QuorumLeader(1, 9, "10.0.0.1", 19093)
        world.loop.call_later(1.0, setattr, house.controller, "is_active", True)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert world.lines.asked == [], "a node does not ask itself by the network"

    on_simulated_time(scenario)


@pytest.mark.parametrize("leader", [None, TWO])
def test_the_time_of_a_question_ends_with_an_error_in_its_own_shape(
    leader: QuorumLeader | None,
) -> None:
    async def scenario(world: World) -> None:
        world.quorum.leader = leader
        world.lines.answers["10.0.0.2"] = lambda _: None
        response = await world.channel.handle(CREATE, timeout_ms=2000)
        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert 1.9 <= world.loop.time() <= 2.1

    on_simulated_time(scenario)


def test_a_controller_that_is_too_old_is_not_asked_again() -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = lambda _: OSError(errno.EPROTONOSUPPORT, "too old")
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert len(world.lines.asked) == 1

    on_simulated_time(scenario)


# What clients ask


def test_a_clients_request_travels_in_an_envelope() -> None:
    async def scenario(world: World) -> None:
        created = CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
        world.lines.answers["10.0.0.2"] = opening(lambda _: created)
        response = await world.channel.forward(CREATE, a_call())
        assert response.topics[0].name == "t"
        ((_, purpose, envelope),) = world.lines.asked
        assert purpose == "forwarding"
        assert isinstance(envelope, EnvelopeRequest)
        header, body = read_request_header(envelope.request_data)
        assert (header.api_version, header.correlation_id, header.client_id) == (7, 77, "abc")
        assert CreateTopicsRequest.read_exactly(envelope.request_data, 7, body) == CREATE
        assert read_principal(envelope.request_principal) == "User:alice"
        assert read_client_host(envelope.client_host_address) == "10.0.0.9"

    on_simulated_time(scenario)


def test_a_clients_request_is_handled_here_while_the_controller_here_is_active() -> None:
    async def scenario(world: World) -> None:
        world.local = (house := FakeControllerListener()).node
        await world.channel.forward(CREATE, a_call())
        await world.channel.forward(AddRaftVoterRequest(timeout_ms=1), a_call(version=1))
        assert house.controller.requests == [(CREATE, 5)]
        assert house.quorum.requests == [("add_voter",)]
        assert world.lines.asked == []

    on_simulated_time(scenario)


def test_the_quorum_is_described_by_its_leader() -> None:
    async def scenario(world: World) -> None:
        world.local = (house := FakeControllerListener()).node
        house.quorum.is_leader = False
        world.loop.call_later(1.0, setattr, house.quorum, "is_leader", True)
        partition = RequestPartitionData(partition_index=0)
        topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        request = DescribeQuorumRequest(topics=[topic])
        response = await world.channel.forward(request, a_call(version=2))
        assert response.topics[0].partitions[0].leader_id == 3

    on_simulated_time(scenario)


def test_changes_of_voters_hold_up_nobody_else() -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = opening(an_answer())
        await world.channel.forward(AddRaftVoterRequest(), a_call(version=1))
        assert world.lines.asked[0][1] == "forwarding-voters"

    on_simulated_time(scenario)


def test_an_envelope_that_reached_a_standby_goes_to_the_new_leader() -> None:
    async def scenario(world: World) -> None:
        standby = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        world.lines.answers["10.0.0.2"] = lambda _: standby
        world.lines.answers["10.0.0.3"] = opening(an_answer())
        world.later(0.2, leader=THREE)
        assert isinstance(await world.channel.forward(CREATE, a_call()), CreateTopicsResponse)

    on_simulated_time(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        EnvelopeResponse(response_data=b"?"),
        EnvelopeResponse(),
    ],
    ids=["refused", "unreadable", "empty"],
)
def test_an_envelope_that_came_to_nothing_is_told_to_the_client(answer: EnvelopeResponse) -> None:
    async def scenario(world: World) -> None:
        world.lines.answers["10.0.0.2"] = lambda _: answer
        response = await world.channel.forward(CREATE, a_call())
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    on_simulated_time(scenario)


def test_a_client_waits_as_long_as_a_request_may_take() -> None:
    async def scenario(world: World) -> None:
        world.quorum.leader = None
        response = await world.channel.forward(CREATE, a_call())
        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert 29.9 <= world.loop.time() <= 30.1

    on_simulated_time(scenario)
