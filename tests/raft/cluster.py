"""Several nodes of a quorum in one process: real files, simulated network and clock."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.world.clock import SimulatedLoop

from barnabas.log import LogDirectory
from barnabas.raft.addresses import RequestOrigin
from barnabas.raft.metadata_log import CommittedBatch
from barnabas.raft.quorum import Quorum
from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.snapshots import FOLDER, format_metadata
from barnabas.raft.voters import VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.peer import ResponseCallback
from barnabas.wire.schema import Message
from barnabas.wire.uuid import ZERO

CLUSTER = "cluster"
DELAY_S = 0.001
FLUSH_S = 0.002
LIMIT_S = 60.0
OTHER_PORT_DISTANCE = 500
"""From the port of a controller's listener to that of its other listener."""


class RecordingListener:
    """Records what the quorum passes to the listener of a node."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.next_offset = 0
        self.last_epoch = 0
        self.resets = 0
        self.led: list[int] = []
        self.resigned_from: list[int] = []
        self.leaders: list[tuple[int | None, int]] = []
        self.failure: OSError | None = None
        self.on_lead: Callable[[int], None] = lambda epoch: None

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            assert batch.last_offset >= self.next_offset, "a batch is passed once, in order"
            self.next_offset = batch.last_offset + 1
            self.last_epoch = batch.epoch
            self.frames += batch.frames

    def on_snapshot(self, batches: Iterable[CommittedBatch]) -> None:
        self.frames = []
        self.resets += 1
        for batch in batches:
            self.frames += batch.frames
            self.next_offset = batch.last_offset + 1
            self.last_epoch = batch.epoch

    def on_became_leader(self, epoch: int) -> None:
        self.led.append(epoch)
        self.on_lead(epoch)

    def on_resigned(self, epoch: int) -> None:
        self.resigned_from.append(epoch)

    def on_leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self.leaders.append((leader_id, epoch))

    def on_failure(self, error: OSError) -> None:
        self.failure = error


class Disk:
    """Syncs after a delay, on the loop; or fails."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.delay_s = FLUSH_S

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        def do() -> None:
            try:
                if self.error is not None:
                    raise self.error
                work()
            except Exception as error:
                done(error)
            else:
                done(None)

        asyncio.get_running_loop().call_later(self.delay_s, do)


class Network:
    """Carries requests between members, encoded as on the wire; any way may be cut."""

    def __init__(self) -> None:
        self.members: dict[int, Member] = {}
        self.cut: set[tuple[int, int]] = set()
        self.cut_off_ids: set[int] = set()
        self.requests: list[tuple[int, int, str]] = []
        self.waiting: dict[_Sent, None] = {}

    def cut_off(self, node_id: int) -> None:
        self.cut_off_ids.add(node_id)
        for other in self.members:
            self.cut |= {(node_id, other), (other, node_id)}

    def heal(self) -> None:
        self.cut.clear()
        self.cut_off_ids.clear()

    def member_at(self, port: int) -> "Member | None":
        for member in self.members.values():
            if member.is_up and member.port == port:
                return member
        return None

    def broken(self, node_id: int) -> None:
        """Closes the connections of all nodes that wait for a response of this one."""
        for sent in [item for item in self.waiting if item.target == node_id]:
            sent.respond(ConnectionResetError("it went away"))


class _Sent:
    """A request in flight; it completes once, unless its sender is gone."""

    def __init__(
        self, network: Network, source: "Member", port: int, on_response: ResponseCallback
    ) -> None:
        self._network = network
        self._source = source
        self._life = source.life
        self._on_response: ResponseCallback | None = on_response
        self.port = port
        self.target: int | None = None
        network.waiting[self] = None

    def respond(self, response: Any) -> None:
        on_response, self._on_response = self._on_response, None
        self._network.waiting.pop(self, None)
        if on_response is not None and self._source.is_up and self._source.life == self._life:
            on_response(response)

    async def carry(self, request: Message, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(timeout_ms / 1000, self.respond, TimeoutError("no response"))
        await asyncio.sleep(DELAY_S)
        network, source_id = self._network, self._source.node_id
        member = network.member_at(self.port)
        if member is None:
            self.respond(ConnectionRefusedError("nobody listens"))
        elif (source_id, member.node_id) not in network.cut:
            self.target = member.node_id
            network.requests.append((source_id, member.node_id, type(request).__name__))
            response = await member.serve(request)
            await asyncio.sleep(DELAY_S)
            if (member.node_id, source_id) not in network.cut:
                self.respond(response)
        if self._on_response is None:
            timer.cancel()


class _Peer:
    def __init__(self, network: Network, source: "Member", port: int) -> None:
        self._network = network
        self._source = source
        self._port = port

    def send(self, request: Message, timeout_ms: int, on_response: ResponseCallback) -> None:
        sent = _Sent(self._network, self._source, self._port, on_response)
        task = asyncio.get_running_loop().create_task(sent.carry(request, timeout_ms))
        self._source.tasks.add(task)
        task.add_done_callback(self._source.tasks.discard)

    def close(self) -> None:
        pass


class _Peers:
    def __init__(self, network: Network, source: "Member") -> None:
        self._network = network
        self._source = source

    def at(self, host: str, port: int, purpose: str) -> _Peer:
        return _Peer(self._network, self._source, port)


class Member:
    """One node: its directory, and its quorum while it is up."""

    def __init__(
        self,
        network: Network,
        path: Path,
        node_id: int,
        *,
        static_voters: VoterSet | None = None,
        initial_voters: VoterSet | None = None,
        bootstrap: Sequence[tuple[str, int]] = (),
        config: QuorumConfig | None = None,
        is_controller: bool = True,
    ) -> None:
        self.node_id = node_id
        self.port = 9000 + node_id
        self.directory_id = directory_of(node_id)
        self.path = path
        self.listener = RecordingListener()
        self.disk = Disk()
        self.is_up = False
        self.life = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        self._network = network
        self._static_voters = static_voters
        self._bootstrap = bootstrap
        self._config = config
        self._is_controller = is_controller
        network.members[node_id] = self
        self.format(initial_voters)

    def format(self, initial_voters: VoterSet | None = None) -> None:
        LogDirectory.format(self.path, CLUSTER, self.node_id, self.directory_id)
        format_metadata(str(self.path), [], initial_voters, now_ms=1)

    @property
    def folder(self) -> Path:
        return self.path / FOLDER

    @property
    def voter(self) -> VoterNode:
        return VoterNode(
            self.node_id, self.directory_id, endpoints_of(self.port) if self._is_controller else ()
        )

    def start(self, on_lead: Callable[[int], None] = lambda epoch: None) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.listener = RecordingListener()
        self.listener.on_lead = on_lead
        self.disk = Disk()
        self.life += 1
        self.directory = LogDirectory.open(self.path)
        self.quorum = Quorum(
            self.directory,
            self.voter,
            static_voters=self._static_voters,
            bootstrap=self._bootstrap,
            config=self._config,
            is_controller=self._is_controller,
            peers=_Peers(self._network, self),
            background=self.disk,
            clock=lambda: loop.now_ms,
            random=Random(self.node_id * 1000 + self.life),
        )
        self.is_up = True
        self.quorum.start(self.listener)

    def kill(self) -> None:
        """The process is gone; what it wrote to its files is there."""
        self.is_up = False
        self.quorum._driver.close()
        self.directory.close(clean=False)
        self._network.broken(self.node_id)

    async def stop(self) -> None:
        await self.quorum.stop()
        self.is_up = False
        self.directory.close()
        self._network.broken(self.node_id)

    def append(self, *frames: bytes) -> int:
        now_ms = asyncio.get_running_loop().now_ms  # type: ignore[attr-defined]
        return self.quorum.append(frames, self.quorum.epoch, now_ms)

    async def serve(self, request: Message) -> Message:
        """Answer as the controller's listener does."""
        version = request.VERSIONS.max
        request, _ = type(request).read(request.write(version), version)
        response = await self._handle(request, version)
        return decoded(response, version)

    async def _handle(self, request: Any, version: int) -> Any:
        if isinstance(request, ApiVersionsRequest):
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            return ApiVersionsResponse(supported_features=[feature])
        return await self.quorum.handle_request(request, at_controller_listener(version))


def at_controller_listener(version: int) -> RequestOrigin:
    return RequestOrigin(version, "CONTROLLER")


def decoded(response: Message, version: int) -> Message:
    """The response as it arrives, with the regions of files in it."""
    outgoing = Outgoing()
    type(response).writer(version)(response, outgoing)
    content = b""
    start = 0
    for position, region in outgoing.regions:
        content += outgoing[start:position] + region.read()  # type: ignore[attr-defined]
        start = position
    content += outgoing[start:]
    return type(response).read_exactly(content, version)


def directory_of(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def endpoints_of(port: int) -> tuple[VoterEndpoint, ...]:
    """Returns the listener that nodes use, and another one."""
    return (
        VoterEndpoint("CONTROLLER", "localhost", port),
        VoterEndpoint("OTHER", "localhost", port + OTHER_PORT_DISTANCE),
    )


def voters_of(*node_ids: int, with_directories: bool = True) -> VoterSet:
    return VoterSet(
        VoterNode(
            node_id,
            directory_of(node_id) if with_directories else ZERO,
            endpoints_of(9000 + node_id),
        )
        for node_id in node_ids
    )


class Cluster:
    """A number of voters, static unless said otherwise."""

    def __init__(
        self,
        path: Path,
        voters: int = 3,
        *,
        dynamic: bool = False,
        config: QuorumConfig | None = None,
    ) -> None:
        self.path = path
        self.network = Network()
        self.config = config
        self.dynamic = dynamic
        ids = range(1, voters + 1)
        self.bootstrap = [("localhost", 9000 + node_id) for node_id in ids]
        self.voters = voters_of(*ids, with_directories=dynamic)
        for node_id in ids:
            self.add(node_id, initial_voters=self.voters if dynamic else None)

    def add(self, node_id: int, **options: Any) -> Member:
        if self.dynamic:
            options.setdefault("bootstrap", self.bootstrap)
        else:
            options.setdefault("static_voters", self.voters)
        options.setdefault("config", self.config)
        return Member(self.network, self.path / str(node_id), node_id, **options)

    def __getitem__(self, node_id: int) -> Member:
        return self.network.members[node_id]

    @property
    def up(self) -> list[Member]:
        return [member for member in self.network.members.values() if member.is_up]

    def start(self) -> None:
        for member in self.network.members.values():
            member.start()

    @property
    def leaders(self) -> list[Member]:
        return [member for member in self.up if member.listener.led[-1:] == [member.quorum.epoch]]

    async def leader(self) -> Member:
        """Waits for a leader that all connected nodes follow, and returns it."""
        await until(lambda: self._agreed() is not None)
        agreed = self._agreed()
        assert agreed is not None
        return agreed

    def _agreed(self) -> Member | None:
        cut_off = self.network.cut_off_ids
        members = [member for member in self.up if member.node_id not in cut_off]
        leaders = [member for member in self.leaders if member in members]
        if len(leaders) != 1 or not leaders[0].quorum.is_leader:
            return None
        (leader,) = leaders
        views = {member.quorum._driver.raft.leader_id for member in members}
        epochs = {member.quorum.epoch for member in members}
        return leader if views == {leader.node_id} and epochs == {leader.quorum.epoch} else None

    async def all_have(self, *frames: bytes) -> None:
        expected = list(frames)
        await until(
            lambda: all(member.listener.frames == expected for member in self.up),
            lambda: {member.node_id: member.listener.frames for member in self.up},
        )

    def followers_of(self, leader: Member) -> list[Member]:
        return [member for member in self.up if member is not leader]

    def close(self) -> None:
        for member in self.up:
            member.kill()


async def until(
    condition: Callable[[], bool], explain: Callable[[], object] = lambda: "it never came"
) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + LIMIT_S
    while not condition():
        assert loop.time() < deadline_s, explain()
        await asyncio.sleep(DELAY_S)


def simulated(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a story on a clock that jumps."""
    loop = SimulatedLoop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(scenario)
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
