"""A controller's listener without ports, with a fake quorum and a fake controller."""

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Any

from tests.server.harness import Client

from barnabas.controller.context import NODE, Requester
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import ControllerRegistration, ListenerEndpoint
from barnabas.raft import QuorumLeader, RequestOrigin, VoterNode, VoterSet
from barnabas.raft.quorum_description import QuorumDescription, QuorumReplicaState
from barnabas.raft.voters import VoterEndpoint as VoterEndpoint
from barnabas.server.network.socket_server import SocketServer, SocketServerSettings
from barnabas.server.nodes import ControllerNode
from barnabas.server.purgatory import Purgatory
from barnabas.server.timer import Timer
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.schema import Message

LISTENER = "CONTROLLER"
LEADER = QuorumLeader(node_id=3, epoch=7, host="127.0.0.1", port=19093)


@dataclass
class FakeController:
    """A controller that accepts every request while it is active."""

    is_active: bool = True
    requests: list[tuple[Message, int]] = field(default_factory=list)

    async def handle(
        self, request: Message, *, requester: Requester = NODE, timeout_ms: int = 0
    ) -> Any:
        self.requests.append((request, timeout_ms))
        if not self.is_active:
            newest = api(request.API_KEY).versions.max
            return error_response(request, newest, ErrorCode.NOT_CONTROLLER)
        return api(request.API_KEY).response()


@dataclass
class FakeQuorum:
    """A quorum that returns empty responses and records the requests."""

    is_leader: bool = True
    leader: QuorumLeader | None = LEADER
    kraft_version: int = 1
    requests: list[Any] = field(default_factory=list)
    fetching: "asyncio.Future[Message] | None" = None

    async def handle_request(self, request: Message, origin: RequestOrigin) -> Message:
        self.requests.append((request.API_KEY, origin.api_version))
        if isinstance(request, FetchRequest) and self.fetching is not None:
            return await self.fetching
        response: Message = api(request.API_KEY).response()
        return response

    def describe(self) -> QuorumDescription:
        endpoints = (VoterEndpoint(LISTENER, "10.0.0.3", 19093),)
        voters = VoterSet([VoterNode(3, b"3" * 16, endpoints)])
        return QuorumDescription(
            leader_id=3,
            epoch=7,
            high_watermark=99,
            end_offset=100,
            voters=voters,
            voter_states=[QuorumReplicaState(3, b"3" * 16, 100, 5000, 5000)],
            observer_states=[QuorumReplicaState(4, b"4" * 16, 90, 4000, 3000)],
        )


class FakeControllerListener:
    """A controller's listener and what is behind it."""

    def __init__(self, **settings: Any) -> None:
        loop = asyncio.get_running_loop()
        timer = Timer(loop)
        nothing: Any = None
        self.controller = FakeController()
        self.quorum = FakeQuorum()
        self.node = ControllerNode(
            node_id=3,
            cluster_id="castle",
            settings={"delete.topic.enable": True, **settings},  # type: ignore[arg-type]
            resolver=nothing,
            image=MetadataImage(),
            timer=timer,
            purgatory=Purgatory(timer),
            disk_reads=nothing,
        )
        self.node.quorum = self.quorum  # type: ignore[assignment]
        self.node.controller = self.controller  # type: ignore[assignment]
        for node_id, name in ((3, LISTENER), (4, LISTENER), (5, "OTHER")):
            self.node.image.controllers[node_id] = ControllerRegistration(
                node_id, bytes(16), (ListenerEndpoint(name, f"10.0.0.{node_id}", 19093, 0),), {}
            )
        self.network = SocketServer(self.node, SocketServerSettings(), loop)

    async def request(self, request: Message, version: int) -> Any:
        client = self.connect()
        await client.send((request, version, 1))
        _, response = await client.receive(ApiKey(request.API_KEY), version)
        client.socket.close()
        return response

    def connect(self) -> Client:
        ours, theirs = socket.socketpair()
        for sock in ours, theirs:
            sock.setblocking(False)
        return Client(theirs, self.network.add_connection(ours, "10.0.0.1", "127.0.0.1", LISTENER))
