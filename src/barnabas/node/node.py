"""One process of a cluster: a controller, a broker, or both on one event loop.

It is started in the order in which the parts need each other (directories, the controller's
listener, the metadata log, recovery of the logs, the clients' listeners, a place in the cluster)
and stopped in reverse.
"""

import asyncio
import errno
import logging
from collections.abc import Iterable, Sequence

from barnabas.config import BrokerSettings, Listener, Resolver, SecurityProtocol
from barnabas.controller import Controller
from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.node.broker_side import BrokerSide
from barnabas.node.chores import Chores
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.controller_channel import ControllerChannel
from barnabas.node.controller_side import ControllerSide
from barnabas.node.errors import Fatal, NodeError
from barnabas.node.leader_watch import LeaderWatch
from barnabas.node.metadata_snapshots import MetadataSnapshots
from barnabas.node.quorum import open_quorum
from barnabas.node.quorum_gauges import QuorumGauges
from barnabas.node.storage import Storage
from barnabas.node.surroundings import Surroundings
from barnabas.raft import CommittedBatch, QuorumError, read_bootstrap
from barnabas.replication import rules_of
from barnabas.server.broker import Broker
from barnabas.server.http import HttpEndpoint
from barnabas.server.metrics import Metrics
from barnabas.wire.errors import KafkaError
from barnabas.wire.records._loops import COMPILED

log = logging.getLogger(__name__)

_GUARDS = (
    "authorizer.class.name",
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
)
"""What forbids something: not to heed it is worse than not to start."""


class Node:
    """A running process. Build it with `Node.start`."""

    def __init__(
        self, settings: BrokerSettings, storage: Storage, surroundings: Surroundings
    ) -> None:
        loop = asyncio.get_running_loop()
        self._surroundings = surroundings
        self.settings = settings
        self._storage = storage
        self._fatal = Fatal()
        self._threads = surroundings.threads(loop)
        self._peers = surroundings.peers(loop, f"node-{settings.node_id}")
        self.metadata = ClusterMetadata()
        self._resolver = Resolver(settings, self.metadata.image.configs)
        self._metrics = Metrics()
        self._metrics_endpoint = HttpEndpoint(self._metrics)
        self.metrics_address: str | None = None
        self._incarnation_id = surroundings.random_uuid()
        self._controller_side = self._build_controller() if settings.is_controller else None
        self._controller_listeners = (
            self._controller_side.listen() if self._controller_side is not None else []
        )
        self.quorum = open_quorum(
            settings,
            storage.metadata,
            self._controller_listeners,
            peers=self._peers,
            background=self._threads,
            surroundings=surroundings,
        )
        self._metrics.register(QuorumGauges(self.quorum))
        self._channel = ControllerChannel(
            settings.node_id,
            self.quorum,
            self._controller_side.take_part(self.quorum) if self._controller_side else None,
            self._peers,
        )
        self.snapshots = MetadataSnapshots(
            settings,
            self.quorum,
            lambda: self.metadata.image,
            threads=self._threads,
            clock=surroundings.clock,
            failed=self.failed,
        )
        self._broker_side: BrokerSide | None = None
        self.metadata.subscribe(self._follow)
        self._chores = Chores(self._fatal, surroundings.clock)

    @classmethod
    async def start(
        cls, settings: BrokerSettings, surroundings: Surroundings | None = None
    ) -> "Node":
        """Take part in the cluster; NodeError says why that cannot be."""
        _require_supported(settings)
        for warning in settings.warnings:
            log.warning("%s", warning)
        if not COMPILED:
            log.warning("the loops over records are not compiled: install a C compiler, reinstall")
        surroundings = surroundings or Surroundings()
        storage = Storage(settings, surroundings.files())
        try:
            node = cls(settings, storage, surroundings)
            node.quorum.start(node)
        except (NodeError, OSError, KafkaError, QuorumError) as error:
            storage.abandon()
            raise NodeError(_reason(error)) from error
        try:
            await node._open()
        except (NodeError, OSError, KafkaError, QuorumError) as error:
            node._abandon()
            raise NodeError(_reason(error)) from error
        except asyncio.CancelledError:
            node._abandon()
            raise
        return node

    @property
    def cluster_id(self) -> str:
        return self._storage.meta.cluster_id

    @property
    def controller(self) -> Controller:
        assert self._controller_side is not None, "this node is a broker only"
        return self._controller_side.controller

    @property
    def broker(self) -> Broker:
        assert self._broker_side is not None, "this node is a controller only"
        return self._broker_side.broker

    @property
    def listeners(self) -> list[Listener]:
        """Where clients, or for a controller other nodes, connect."""
        return self._broker_side.listeners if self._broker_side else self._controller_listeners

    @property
    def address(self) -> str:
        """Where clients connect."""
        return str(self.listeners[0]).partition("://")[2]

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, or until something happens after which that is impossible."""
        waiting = [asyncio.create_task(each) for each in (stop.wait(), self._fatal.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if self._fatal.reason:
            raise NodeError(self._fatal.reason)

    async def stop(self) -> None:
        """Hand over, answer what is under way, bring all to disk, leave the clean stop's mark."""
        log.info("stopping: handing over, then answering what is under way")
        self._chores.stop()
        if self._broker_side is not None:
            await self._broker_side.leave()
        await self._metrics_endpoint.close()
        await self.snapshots.close()
        await self.quorum.stop()
        if self._controller_side is not None:
            await self._controller_side.close()
        self._peers.close()
        await self._threads.close()
        if self._broker_side is None:
            is_clean = self._storage.close()
        else:
            is_clean = self._broker_side.close()
            is_clean = self._storage.close(but_for=self._storage.directories) and is_clean
        log.info("stopped cleanly" if is_clean else "stopped; the next start will recover")

    # Starting

    def _build_controller(self) -> ControllerSide:
        return ControllerSide(
            self.settings,
            self.metadata,
            self._resolver,
            cluster_id=self._storage.meta.cluster_id,
            bootstrap=read_bootstrap(self._storage.metadata.path),
            incarnation_id=self._incarnation_id,
            metrics=self._metrics,
            surroundings=self._surroundings,
        )

    async def _open(self) -> None:
        self._require_no_failure()
        if self._controller_side is not None:
            self._controller_side.register(self._channel, self._controller_listeners)
            self._chores.often(self._controller_side.maintain)
        self._chores.now_and_then(self.snapshots.maintain)
        self._chores.now_and_then(LeaderWatch(self.quorum, self.cluster_id, self._fatal).look)
        if self.settings.is_broker:
            await self._join_brokers()
        await self._open_metrics()
        if self._broker_side is not None:
            self._broker_side.serve()
            self._chores.keep_house(self._broker_side.partitions)
        log.info(
            "node %d of cluster %s serves %s",
            self.settings.node_id,
            self.cluster_id,
            ", ".join(map(str, self.listeners)),
        )

    async def _join_brokers(self) -> None:
        await self._storage.recover(
            self._threads, lambda topic: rules_of(topic, self._resolver).log
        )
        side = self._broker_side = BrokerSide(
            self.settings,
            self._storage,
            self.metadata,
            self._resolver,
            self._channel,
            self._peers,
            self._threads,
            self._metrics,
            self._surroundings,
        )
        side.listen()
        joining = asyncio.create_task(side.join(self._incarnation_id))
        failing = asyncio.create_task(self._fatal.wait())
        await asyncio.wait([joining, failing], return_when=asyncio.FIRST_COMPLETED)
        failing.cancel()
        self._require_no_failure()
        await joining

    async def _open_metrics(self) -> None:
        address = self.settings["barnabas.metrics.listener"]
        if address:
            host, _, port = address.rpartition(":")
            bound_port = await self._metrics_endpoint.start(host.strip("[]"), int(port))
            self.metrics_address = f"{host}:{bound_port}"

    def _abandon(self) -> None:
        """Let go of all that was begun, for the start has failed."""
        self._chores.stop()
        self.quorum.abandon()
        self._peers.close()
        self._storage.abandon()

    def _require_no_failure(self) -> None:
        if self._fatal.reason:
            raise NodeError(self._fatal.reason)

    # What the quorum tells (barnabas.raft.QuorumListener)

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        try:
            self.metadata.take(batches)
        except NodeError as error:
            self._fatal.declare(str(error))
            return
        if self._controller_side is not None:
            self._controller_side.published(batches[-1].last_offset)

    def reset(self, batches: Iterable[CommittedBatch]) -> None:
        try:
            self.metadata.replace(batches)
        except NodeError as error:
            self._fatal.declare(str(error))

    def leads(self, epoch: int) -> None:
        if self._controller_side is not None:
            self._controller_side.leads(epoch)

    def resigned(self, epoch: int) -> None:
        if self._controller_side is not None:
            self._controller_side.resigned()

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        # The controller speaks for itself, once it is active.
        if leader_id not in (None, self.settings.node_id):
            log.info("node %d is the active controller, in epoch %d", leader_id, epoch)

    def failed(self, error: OSError) -> None:
        self._fatal.declare(
            f"The metadata log cannot be written ({error}). Free or replace the disk, then "
            "restart this node."
        )

    def _follow(self, delta: Delta, image: Image) -> None:
        """The metadata changed: settings first, for all others obey them."""
        self._resolver.configs = image.configs
        if delta.configs_changed:
            self._resolver.changed(delta.configs_changed)
        if self._broker_side is not None:
            try:
                self._broker_side.follow(delta, image)
            except NodeError as error:
                self._fatal.declare(str(error))
        if self._controller_side is not None:
            self._controller_side.follow(delta, image)


def _require_supported(settings: BrokerSettings) -> None:
    """What this version cannot run is refused at once, with the reason."""
    for listener in settings.listeners:
        if listener.security_protocol is not SecurityProtocol.PLAINTEXT:
            raise NodeError(
                f"Listener {listener} wants {listener.security_protocol.name}; this version "
                "serves PLAINTEXT only: change listener.security.protocol.map."
            )
    for guard in _GUARDS:
        if settings[guard]:
            raise NodeError(
                f"{guard} is {settings[guard]}; this version guards nothing, and would let "
                "everybody do everything: take the setting out if that is what you want."
            )


def _reason(error: Exception) -> str:
    """The words of an error, and what to do about the one that is met most often."""
    match error:
        case OSError(errno=errno.EADDRINUSE):
            return f"{error.strerror}; stop what listens there, or choose another port."
        case OSError(strerror=str(reason)) | KafkaError(message=str(reason)) if reason:
            return reason
    return str(error)
