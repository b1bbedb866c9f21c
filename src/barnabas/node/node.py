"""One node: a broker and its controller in one process and on one event loop.

It is started in the order in which the parts need each other (directories, metadata log, the
controller and its image, recovery of the logs, listeners, registration) and stopped in reverse.
"""

import asyncio
import errno
import gc
import logging
import socket

from barnabas.config import BrokerSettings, Listener, Resolver, SecurityProtocol
from barnabas.controller import Controller
from barnabas.log import LogDirectory
from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.node import registration
from barnabas.node.background import Threads
from barnabas.node.chores import Chores
from barnabas.node.coordination import coordinate
from barnabas.node.errors import Fatal, NodeError
from barnabas.node.format import own_voter
from barnabas.node.presence import Presence
from barnabas.node.storage import Storage
from barnabas.raft import Quorum, QuorumConfig, QuorumError, Voter, Voters, read_bootstrap
from barnabas.replication import Partitions, rules_of
from barnabas.server.broker import Broker, wall_clock_ms
from barnabas.server.http import HttpEndpoint
from barnabas.server.network import Network, NetworkSettings
from barnabas.server.peers import SocketPeers
from barnabas.server.purgatory import Purgatory
from barnabas.server.sessions import FetchSessions
from barnabas.server.timer import Timer
from barnabas.wire.errors import KafkaError
from barnabas.wire.records._loops import COMPILED
from barnabas.wire.uuid import ZERO, random_uuid

DRAIN_MS = 10_000
"""How long a stop waits for requests that are under way."""

log = logging.getLogger(__name__)


class Node:
    """A running broker and controller. Build it with `Node.start`."""

    def __init__(
        self,
        settings: BrokerSettings,
        storage: Storage,
        controller: Controller,
        resolver: Resolver,
        threads: Threads,
        fatal: Fatal,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.settings = settings
        self.listeners: list[Listener] = []
        self.metrics_address: str | None = None
        self._storage = storage
        self._controller = controller
        self._threads = threads
        self._fatal = fatal
        timer = Timer(loop)
        purgatory = Purgatory(timer)
        self._partitions = Partitions(
            settings.node_id,
            storage.directories,
            resolver,
            controller.image,
            waiting=purgatory,
            background=threads,
            ask_controller=lambda request: asyncio.ensure_future(controller.handle(request)),
            clock=wall_clock_ms,
            lost_paths=storage.lost_paths,
        )
        self.broker = Broker(
            node_id=settings.node_id,
            cluster_id=storage.meta.cluster_id,
            settings=settings,
            resolver=resolver,
            image=controller.image,
            partitions=self._partitions,
            controller=controller,
            timer=timer,
            purgatory=purgatory,
            fetch_sessions=FetchSessions(settings["max.incremental.fetch.session.cache.slots"]),
        )
        self._peers = SocketPeers(loop, f"broker-{settings.node_id}")
        self._elections = coordinate(self.broker, self._peers)
        self._network = Network(self.broker, NetworkSettings.of(resolver.broker_config), loop)
        self._metrics = HttpEndpoint(self.broker)
        self._presence = Presence(settings, controller, lambda: controller.image, self._partitions)
        self._chores = Chores(self._partitions, controller, self.broker.clock, fatal)

    @classmethod
    async def start(cls, settings: BrokerSettings) -> "Node":
        """Serve clients; NodeError says why that cannot be."""
        _require_supported(settings)
        for warning in settings.warnings:
            log.warning("%s", warning)
        if not COMPILED:
            log.warning("the loops over records are not compiled: install a C compiler, reinstall")
        threads, fatal = Threads(asyncio.get_running_loop()), Fatal()
        storage = Storage(settings)
        try:
            controller = _start_controller(settings, storage.metadata, fatal)
            resolver = Resolver(settings, controller.image.configs)
            await storage.recover(threads, lambda topic: rules_of(topic, resolver).log)
            node = cls(settings, storage, controller, resolver, threads, fatal)
            await node._open()
        except (NodeError, OSError, KafkaError, QuorumError) as error:
            storage.abandon()
            raise NodeError(_reason(error)) from error
        # What is loaded by now lives as long as the process: collections need not look at it.
        gc.collect()
        gc.freeze()
        return node

    @property
    def address(self) -> str:
        """Where clients connect."""
        return str(self.listeners[0]).partition("://")[2]

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, or until no log directory is left to serve from."""
        waiting = [asyncio.create_task(each) for each in (stop.wait(), self._fatal.wait())]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if self._fatal.reason:
            raise NodeError(self._fatal.reason)

    async def stop(self) -> None:
        """Answer what is under way, bring all to disk, leave the mark of a clean stop."""
        self._chores.stop()
        await self._presence.leave()
        self.broker.purgatory.release_all()
        self._elections.end()
        self._peers.close()
        await self._network.drain(DRAIN_MS)
        await self._metrics.close()
        await self._controller.close()
        await self._threads.close()
        is_clean = self._partitions.close(clean=True, broker_epoch=self._presence.epoch)
        is_clean = self._storage.close_metadata() and is_clean
        self.broker.timer.close()
        log.info("stopped cleanly" if is_clean else "stopped; the next start will recover")

    async def _open(self) -> None:
        """Open the listeners, register, and from then on do the chores."""
        self._controller.subscribe(self._follow)
        self._listen()
        await self._register()
        self._elections.begin(self.broker.image)
        self._network.open()
        await self._serve_metrics()
        self._chores.begin()
        log.info(
            "node %d of cluster %s serves %s",
            self.settings.node_id,
            self.broker.cluster_id,
            ", ".join(map(str, self.listeners)),
        )

    async def _serve_metrics(self) -> None:
        address = self.settings["barnabas.metrics.listener"]
        if address:
            host, _, port = address.rpartition(":")
            bound_port = await self._metrics.start(host.strip("[]"), int(port))
            self.metrics_address = f"{host}:{bound_port}"

    def _listen(self) -> None:
        """Take the clients' addresses, and note what to tell clients of them.

        Nobody is served before the broker is registered: a client would learn of no broker.
        """
        controllers = {each.name for each in self.settings.controller_listeners}
        bound = {
            each.name: self._network.listen(each.name, each.host, each.port).port
            for each in self.settings.listeners
            if each.name not in controllers
        }
        self.listeners = [
            each._replace(host=each.host or socket.getfqdn(), port=each.port or bound[each.name])
            for each in self.settings.advertised_listeners
        ]

    async def _register(self) -> None:
        storage, incarnation_id = self._storage, random_uuid()
        request = registration.controller_request(
            self.settings, self.settings.controller_listeners, incarnation_id
        )
        await self._controller.handle(request)
        await self._presence.register(
            registration.broker_request(
                self.settings,
                self.listeners,
                cluster_id=self.broker.cluster_id,
                incarnation_id=incarnation_id,
                directory_ids=[each.directory_id for each in storage.directories],
                previous_epoch=storage.previous_broker_epoch,
            )
        )
        await self._presence.begin()

    def _follow(self, delta: Delta, image: Image) -> None:
        """The metadata changed: settings first, for the partitions obey them."""
        if delta.configs_changed:
            self.broker.resolver.changed(delta.configs_changed)
            self._network.settings = NetworkSettings.of(self.broker.resolver.broker_config)
        self.broker.image = image
        self._partitions.apply(delta, image)
        self._elections.follow(delta, image)
        for topic in delta.topics_deleted.values():
            self.broker.metrics.forget_topic(topic.name)


def _require_supported(settings: BrokerSettings) -> None:
    """What this version cannot run is refused at once, with the reason."""
    if not (settings.is_broker and settings.is_controller):
        raise NodeError(
            "This version runs nodes that are broker and controller in one: "
            "set process.roles=broker,controller."
        )
    for listener in settings.listeners:
        if listener.security_protocol is not SecurityProtocol.PLAINTEXT:
            raise NodeError(
                f"Listener {listener} wants {listener.security_protocol.name}; this version "
                "serves PLAINTEXT only: change listener.security.protocol.map."
            )


def _reason(error: Exception) -> str:
    """The words of an error, and what to do about the one that is met most often."""
    match error:
        case OSError(errno=errno.EADDRINUSE):
            return f"{error.strerror}; stop what listens there, or choose another port."
        case OSError(strerror=str(reason)) | KafkaError(message=str(reason)) if reason:
            return reason
    return str(error)


def _start_controller(
    settings: BrokerSettings, directory: LogDirectory, fatal: Fatal
) -> Controller:
    """Lead the metadata quorum, with the image loaded."""
    static = Voters(Voter(each.node_id, ZERO, ()) for each in settings.voters)
    quorum = Quorum.open(
        directory,
        own_voter(settings, directory.directory_id),
        static_voters=static if len(static) else None,
        config=QuorumConfig(
            segment_bytes=settings["metadata.log.segment.bytes"],
            segment_ms=settings["metadata.log.segment.ms"],
            retention_bytes=settings["metadata.max.retention.bytes"],
            retention_ms=settings["metadata.max.retention.ms"],
        ),
    )
    controller = Controller(
        quorum,
        settings,
        cluster_id=directory.meta.cluster_id,
        clock=wall_clock_ms,
        on_failure=lambda failure: fatal.declare(str(failure)),
    )
    controller.start(read_bootstrap(directory.path))
    return controller
