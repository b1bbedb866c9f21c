"""A request reaches the active controller, local or remote, also if another becomes active."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.controller_api.fake_controller import FakeControllerListener
from tests.simulation.world.clock import SimulatedLoop

from barnabas.node.controller_channel import ControllerChannel
from barnabas.raft import QuorumLeader
from barnabas.security.principal import KafkaPrincipal
from barnabas.server.envelopes import encode_response, read_client_host, read_principal
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.headers import read_request_header
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.raft_voters import AddRaftVoterRequest
from barnabas.wire.messages.registrations import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.schema import Message

HEARTBEAT = BrokerHeartbeatRequest(broker_id=1, broker_epoch=5)
ALICE = KafkaPrincipal("User", "alice")
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")], timeout_ms=5)
TWO = QuorumLeader(2, 7, "10.0.0.2", 19093)
THREE = QuorumLeader(3, 8, "10.0.0.3", 19093)


class FakePeers:
    """Peers with responses by host, computed from the request; None means that none comes."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Message]] = []
        self.responses: dict[str, Callable[[Message], Message | OSError | None]] = {}

    def at(self, host: str, port: int, purpose: str) -> Any:
        def send(request: Message, timeout_ms: int, on_response: Callable[[Any], None]) -> None:
            self.requests.append((host, purpose, request))
            outcome = self.responses[host](request)
            loop = asyncio.get_running_loop()
            if outcome is None:
                loop.call_later(
                    timeout_ms / 1000, on_response, TimeoutError(errno.ETIMEDOUT, "late")
                )
            else:
                loop.call_soon(on_response, outcome)

        return SimpleNamespace(send=send)


class World:
    """Node 1, which sends requests, and its view of the quorum."""

    def __init__(self) -> None:
        self.quorum = SimpleNamespace(leader=TWO)  # in the view of this node
        self.peers = FakePeers()
        self.local: Any = None
        self.loop = asyncio.get_running_loop()

    @property
    def channel(self) -> ControllerChannel:
        quorum: Any = self.quorum
        return ControllerChannel(1, quorum, self.local, self.peers)

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


def a_context(version: int = 7) -> RequestContext:
    connection: Any = SimpleNamespace(host="10.0.0.9", principal=ALICE, listener="PLAINTEXT")
    nothing: Any = None
    return RequestContext(ApiKey.CREATE_TOPICS, version, 77, "abc", connection, nothing, 0, 0)


def respond(**fields: Any) -> Callable[[Message], Message]:
    return lambda request: api(request.API_KEY).response(**fields)


def open_envelope(respond_to: Callable[[Message], Message]) -> Callable[[Message], Message]:
    """Returns a controller that opens envelopes and responds in envelopes."""

    def handle(envelope: Any) -> Message:
        header, body = read_request_header(envelope.request_data)
        request = api(header.api_key).request.read_exactly(
            envelope.request_data, header.api_version, body
        )
        return EnvelopeResponse(response_data=encode_response(respond_to(request), header))

    return handle


# Requests of this node


def test_a_request_is_sent_to_the_leader_of_the_quorum() -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = respond(is_fenced=False)
        response = await world.channel.handle(HEARTBEAT, timeout_ms=4500)
        assert response == BrokerHeartbeatResponse(is_fenced=False)
        assert world.peers.requests == [("10.0.0.2", "lifecycle", HEARTBEAT)]

    on_simulated_time(scenario)


def test_heartbeats_have_a_connection_of_their_own() -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = respond()
        await world.channel.handle(AlterPartitionRequest())
        await world.channel.handle(HEARTBEAT)
        assert [purpose for _, purpose, _ in world.peers.requests] == ["controller", "lifecycle"]

    on_simulated_time(scenario)


def test_the_local_controller_handles_requests_while_it_is_active() -> None:
    async def scenario(world: World) -> None:
        world.local = (listener := FakeControllerListener()).node
        response = await world.channel.handle(AlterPartitionRequest(), timeout_ms=44)
        assert isinstance(response, AlterPartitionResponse)
        assert listener.controller.requests == [(AlterPartitionRequest(), 44)]
        assert world.peers.requests == []

    on_simulated_time(scenario)


def test_a_request_that_a_standby_rejects_is_sent_to_the_new_leader() -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = respond(error_code=ErrorCode.NOT_CONTROLLER)
        world.peers.responses["10.0.0.3"] = respond()
        world.later(0.2, leader=THREE)
        response = await world.channel.handle(HEARTBEAT, timeout_ms=4500)
        assert response.error_code == ErrorCode.NONE
        assert world.peers.requests[-1][0] == "10.0.0.3"
        assert world.loop.time() < 0.3

    on_simulated_time(scenario)


@pytest.mark.parametrize("lost", [ConnectionRefusedError, ConnectionResetError, TimeoutError])
def test_a_request_to_a_lost_leader_is_sent_to_the_new_leader(lost: type[OSError]) -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = lambda _: lost("gone")
        world.peers.responses["10.0.0.3"] = respond()
        world.later(0.2, leader=THREE)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert world.loop.time() < 0.3

    on_simulated_time(scenario)


def test_a_request_without_a_response_is_sent_to_the_new_leader_once_there_is_one() -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = lambda _: None
        world.peers.responses["10.0.0.3"] = respond()
        world.later(1.0, leader=None)
        world.later(2.0, leader=THREE)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert [host for host, *_ in world.peers.requests] == ["10.0.0.2", "10.0.0.3"]
        assert world.loop.time() < 2.3

    on_simulated_time(scenario)


def test_a_request_waits_while_the_quorum_has_no_leader() -> None:
    async def scenario(world: World) -> None:
        world.quorum.leader = None
        world.peers.responses["10.0.0.3"] = respond()
        world.later(3.0, leader=THREE)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert world.loop.time() < 3.1

    on_simulated_time(scenario)


def test_a_request_waits_until_the_local_leader_is_active() -> None:
    async def scenario(world: World) -> None:
        world.local = (listener := FakeControllerListener()).node
        listener.controller.is_active = False
        world.quorum.leader = QuorumLeader(1, 9, "10.0.0.1", 19093)
        world.loop.call_later(1.0, setattr, listener.controller, "is_active", True)
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.NONE
        assert world.peers.requests == [], "a node sends itself no requests by the network"

    on_simulated_time(scenario)


@pytest.mark.parametrize("leader", [None, TWO])
def test_a_request_that_times_out_gets_an_error_response_of_its_own_type(
    leader: QuorumLeader | None,
) -> None:
    async def scenario(world: World) -> None:
        world.quorum.leader = leader
        world.peers.responses["10.0.0.2"] = lambda _: None
        response = await world.channel.handle(CREATE, timeout_ms=2000)
        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert 1.9 <= world.loop.time() <= 2.1

    on_simulated_time(scenario)


def test_a_request_that_the_controller_does_not_support_is_not_retried() -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = lambda _: OSError(errno.EPROTONOSUPPORT, "too old")
        response = await world.channel.handle(HEARTBEAT)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert len(world.peers.requests) == 1

    on_simulated_time(scenario)


# Requests of clients


def test_a_request_of_a_client_is_forwarded_in_an_envelope() -> None:
    async def scenario(world: World) -> None:
        created = CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
        world.peers.responses["10.0.0.2"] = open_envelope(lambda _: created)
        response = await world.channel.forward(CREATE, a_context())
        assert response.topics[0].name == "t"
        ((_, purpose, envelope),) = world.peers.requests
        assert purpose == "forwarding"
        assert isinstance(envelope, EnvelopeRequest)
        header, body = read_request_header(envelope.request_data)
        assert (header.api_version, header.correlation_id, header.client_id) == (7, 77, "abc")
        assert CreateTopicsRequest.read_exactly(envelope.request_data, 7, body) == CREATE
        assert read_principal(envelope.request_principal) == ALICE
        assert read_client_host(envelope.client_host_address) == "10.0.0.9"

    on_simulated_time(scenario)


def test_a_request_of_a_client_is_handled_by_the_local_controller_while_it_is_active() -> None:
    async def scenario(world: World) -> None:
        world.local = (listener := FakeControllerListener()).node
        await world.channel.forward(CREATE, a_context())
        await world.channel.forward(AddRaftVoterRequest(timeout_ms=1), a_context(version=1))
        assert listener.controller.requests == [(CREATE, 5)]
        assert listener.quorum.requests == [(ApiKey.ADD_RAFT_VOTER, 1)]
        assert world.peers.requests == []

    on_simulated_time(scenario)


def test_describe_quorum_waits_for_the_local_leader() -> None:
    async def scenario(world: World) -> None:
        world.local = (listener := FakeControllerListener()).node
        listener.quorum.is_leader = False
        world.loop.call_later(1.0, setattr, listener.quorum, "is_leader", True)
        partition = RequestPartitionData(partition_index=0)
        topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        request = DescribeQuorumRequest(topics=[topic])
        response = await world.channel.forward(request, a_context(version=2))
        assert response.topics[0].partitions[0].leader_id == 3

    on_simulated_time(scenario)


def test_voter_changes_are_forwarded_on_a_connection_of_their_own() -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = open_envelope(respond())
        await world.channel.forward(AddRaftVoterRequest(), a_context(version=1))
        assert world.peers.requests[0][1] == "forwarding-voters"

    on_simulated_time(scenario)


def test_an_envelope_that_a_standby_rejects_is_sent_to_the_new_leader() -> None:
    async def scenario(world: World) -> None:
        standby = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        world.peers.responses["10.0.0.2"] = lambda _: standby
        world.peers.responses["10.0.0.3"] = open_envelope(respond())
        world.later(0.2, leader=THREE)
        assert isinstance(await world.channel.forward(CREATE, a_context()), CreateTopicsResponse)

    on_simulated_time(scenario)


@pytest.mark.parametrize(
    "envelope",
    [
        EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        EnvelopeResponse(response_data=b"?"),
        EnvelopeResponse(),
    ],
    ids=["rejected", "unreadable", "empty"],
)
def test_an_envelope_that_cannot_be_used_is_an_error_for_the_client(
    envelope: EnvelopeResponse,
) -> None:
    async def scenario(world: World) -> None:
        world.peers.responses["10.0.0.2"] = lambda _: envelope
        response = await world.channel.forward(CREATE, a_context())
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    on_simulated_time(scenario)


def test_a_forwarded_request_times_out_after_the_request_timeout() -> None:
    async def scenario(world: World) -> None:
        world.quorum.leader = None
        response = await world.channel.forward(CREATE, a_context())
        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert 29.9 <= world.loop.time() <= 30.1

    on_simulated_time(scenario)
