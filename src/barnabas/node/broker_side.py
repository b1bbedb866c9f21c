"""The broker of a node: partitions, clients, coordinators, and its place in the cluster."""

import asyncio
from dataclasses import replace

from barnabas.config import BrokerSettings, Listener, Resolver
from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.node import registration
from barnabas.node.background import Threads
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.controller_channel import ControllerChannel
from barnabas.node.coordination import coordinate
from barnabas.node.listening import listen
from barnabas.node.presence import Presence
from barnabas.node.replication_gauges import ReplicationGauges
from barnabas.node.storage import Storage
from barnabas.node.surroundings import Surroundings
from barnabas.replication import Partitions
from barnabas.replication.following.fetchers import Fetchers
from barnabas.server.broker import Broker
from barnabas.server.broker_gauges import BrokerGauges
from barnabas.server.metrics import Metrics
from barnabas.server.network import NetworkSettings
from barnabas.server.purgatory import Purgatory
from barnabas.server.sessions import FetchSessions
from barnabas.server.timer import Timer
from barnabas.wire.peer import Peers

DRAIN_MS = 5_000
"""How long a stop waits for requests that are under way."""


class BrokerSide:
    """Begins with `listen`, joins the cluster, serves; leaves it, and closes."""

    def __init__(
        self,
        settings: BrokerSettings,
        storage: Storage,
        metadata: ClusterMetadata,
        resolver: Resolver,
        channel: ControllerChannel,
        peers: Peers,
        threads: Threads,
        metrics: Metrics,
        surroundings: Surroundings,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.listeners: list[Listener] = []
        self._settings = settings
        self._storage = storage
        self._metadata = metadata
        timer = Timer(loop)
        purgatory = Purgatory(timer)
        self.partitions = Partitions(
            settings.node_id,
            storage.directories,
            resolver,
            metadata.image,
            waiting=purgatory,
            background=threads,
            ask_controller=lambda request: asyncio.ensure_future(channel.handle(request)),
            clock=surroundings.clock,
            lost_paths=storage.lost_paths,
        )
        self.broker = Broker(
            node_id=settings.node_id,
            cluster_id=storage.meta.cluster_id,
            settings=settings,
            resolver=resolver,
            image=metadata.image,
            partitions=self.partitions,
            controller=channel,
            timer=timer,
            purgatory=purgatory,
            fetch_sessions=FetchSessions(settings["max.incremental.fetch.session.cache.slots"]),
            metrics=metrics,
            clock=surroundings.clock,
        )
        self._presence = Presence(settings, channel, lambda: metadata.image, self.partitions)
        self._fetchers = Fetchers(
            self.partitions,
            peers,
            resolver,
            listener=settings.inter_broker_listener_name,
            broker_epoch=lambda: self._presence.epoch,
            clock=surroundings.clock,
            loop=loop,
        )
        self._elections = coordinate(self.broker, peers)
        network_settings = NetworkSettings.of(resolver.broker_config)
        self._network = surroundings.network(self.broker, network_settings, loop)
        metrics.register(BrokerGauges(self.broker))
        metrics.register(ReplicationGauges(self._fetchers))
        self._is_registered = False

    @property
    def epoch(self) -> int:
        return self._presence.epoch

    def listen(self) -> None:
        """Take the clients' addresses, and note what to tell clients of them.

        Nobody is served before the broker may lead: a client would learn of no broker.
        """
        controllers = {each.name for each in self._settings.controller_listeners}
        own = [each for each in self._settings.listeners if each.name not in controllers]
        self.listeners = listen(self._network, own, self._settings.advertised_listeners)

    async def join(self, incarnation_id: bytes) -> None:
        """Register, begin to follow those who lead, and wait to be let in."""
        await self._presence.register(
            registration.broker_request(
                self._settings,
                self.listeners,
                cluster_id=self.broker.cluster_id,
                incarnation_id=incarnation_id,
                directory_ids=[each.directory_id for each in self._storage.directories],
                previous_epoch=self._storage.previous_broker_epoch,
            )
        )
        await self._metadata.until(lambda image: image.offset >= self._presence.epoch)
        self._is_registered = True
        image = self._metadata.image
        self._fetchers.follow(Delta.between(Image(), image), image)
        await self._presence.begin()
        # The controller has let it in, but here the news is yet to come; and clients that ask who
        # is there must not hear that nobody is.
        await self._metadata.until(self._is_let_in)

    def _is_let_in(self, image: Image) -> bool:
        broker = image.brokers.get(self.broker.node_id)
        return broker is not None and not broker.fenced

    def serve(self) -> None:
        """Take up what this broker leads, and let clients in."""
        self._elections.begin(self.broker.image)
        self._network.open()

    async def leave(self) -> None:
        """Hand over to other brokers; then answer what is under way, and nobody else."""
        await self._presence.leave()
        self.broker.purgatory.release_all()
        self._elections.end()
        await self._network.drain(DRAIN_MS)
        self._fetchers.stop()
        self.broker.timer.close()

    def close(self) -> bool:
        """Bring all to disk; whether the next start finds it clean."""
        return self.partitions.close(clean=True, broker_epoch=self._presence.epoch)

    def follow(self, delta: Delta, image: Image) -> None:
        """The metadata changed, and the settings with it: the partitions obey both.

        NodeError if it is another process that the metadata now speaks of.
        """
        self._presence.require_place(image)
        if delta.configs_changed:
            self._network.settings = NetworkSettings.of(self.broker.resolver.broker_config)
        self.broker.image = image
        if not self._is_registered:
            # Until the image has this broker's registration, it shows leaders of the past: one
            # that led again, if only for a moment, would forget where the epochs since began.
            delta = replace(delta, partitions_changed={})
        self.partitions.apply(delta, image)
        if self._is_registered:
            self._fetchers.follow(delta, image)
        self._elections.follow(delta, image)
        self._presence.follow(delta, image)
        for topic in delta.topics_deleted.values():
            self.broker.metrics.forget_topic(topic.name)
