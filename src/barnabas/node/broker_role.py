"""The broker role of a node: partitions, client listeners, coordinators, registration."""

import asyncio
from dataclasses import replace

from barnabas.config import BrokerSettings, ConfigResolver, ConfigResourceType, Listener
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.broker_lifecycle import BrokerLifecycle
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.controller_channel import ControllerChannel
from barnabas.node.coordinators import add_coordinators
from barnabas.node.environment import DiskThreads, Environment
from barnabas.node.gauges import ReplicationGauges
from barnabas.node.listeners import broker_registration_request, listen
from barnabas.node.security import NodeSecurity
from barnabas.node.storage import NodeStorage
from barnabas.replication import Partitions
from barnabas.replication.replica_fetcher.manager import ReplicaFetcherManager
from barnabas.server.authorization import RequestAuthorizer
from barnabas.server.disk_reads import DiskReads
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.lanes.broker_lanes import broker_lanes
from barnabas.server.metrics.gauges import BrokerGauges, CleanerGauges
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.server.network.socket_server import SocketServerSettings
from barnabas.server.nodes import BrokerNode
from barnabas.server.purgatory import Purgatory
from barnabas.server.quotas import RequestQuotas
from barnabas.server.telemetry.telemetry import ClientTelemetry
from barnabas.server.timer import Timer
from barnabas.wire.peer import Peers

DRAIN_MS = 5_000
"""How long a shutdown waits for requests that are in progress."""


class BrokerRole:
    """Called in this order: `listen`, `join`, `serve`; `shut_down`, `close`."""

    def __init__(
        self,
        settings: BrokerSettings,
        storage: NodeStorage,
        metadata: ClusterMetadata,
        resolver: ConfigResolver,
        security: NodeSecurity,
        channel: ControllerChannel,
        peers: Peers,
        threads: DiskThreads,
        disk_reads: DiskReads,
        metrics: MetricsRegistry,
        environment: Environment,
        authorizer: RequestAuthorizer | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.listeners: list[Listener] = []
        self._settings = settings
        self._security = security
        self._storage = storage
        self._metadata = metadata
        # Cleanings run for long and sleep when they are throttled: no flush may wait for them.
        self._cleaner_threads = environment.threads(loop)
        timer = Timer(loop)
        purgatory = Purgatory(timer)
        self.partitions = Partitions(
            settings.node_id,
            storage.directories,
            resolver,
            metadata.image,
            purgatory=purgatory,
            background=threads,
            cleaner_background=self._cleaner_threads,
            send_to_controller=lambda request: asyncio.ensure_future(channel.handle(request)),
            clock=environment.clock,
            offline_paths=storage.failed_paths,
        )
        self.broker = BrokerNode(
            node_id=settings.node_id,
            cluster_id=storage.meta.cluster_id,
            settings=settings,
            resolver=resolver,
            image=metadata.image,
            partitions=self.partitions,
            controller=channel,
            timer=timer,
            purgatory=purgatory,
            fetch_sessions=FetchSessionCache(
                settings["max.incremental.fetch.session.cache.slots"], random=environment.random
            ),
            disk_reads=disk_reads,
            authorizer=authorizer,
            quotas=RequestQuotas.of(settings, loop, metadata.image.quotas),
            telemetry=ClientTelemetry(settings["telemetry.max.bytes"]),
            metrics=metrics,
            store_validator=security.tls if security.tls.is_used else None,
            clock=environment.clock,
            monotonic_ns=environment.monotonic_ns,
        )
        self._lifecycle = BrokerLifecycle(
            settings, channel, lambda: metadata.image, self.partitions
        )
        self._fetchers = ReplicaFetcherManager(
            self.partitions,
            peers,
            resolver,
            listener=settings.inter_broker_listener_name,
            broker_epoch=lambda: self._lifecycle.epoch,
            clock=environment.clock,
            loop=loop,
        )
        self._elections = add_coordinators(self.broker, peers, environment.random.randbytes)
        self.broker.lanes = broker_lanes(self.broker)
        network_settings = SocketServerSettings.of(resolver.broker_config)
        self._network = environment.network(self.broker, network_settings, loop)
        self._network.connection_quotas.set_ip_quotas(metadata.image.quotas)
        metrics.register(BrokerGauges(self.broker))
        metrics.register(self.broker.quotas)
        metrics.register(self.broker.telemetry)
        self.broker.telemetry.update(metadata.image.configs)
        metrics.register(CleanerGauges(self.broker))
        metrics.register(ReplicationGauges(self._fetchers))
        self._is_registered = False

    @property
    def epoch(self) -> int:
        return self._lifecycle.epoch

    def listen(self) -> None:
        """Binds the client listeners.

        Connections are accepted only in `serve`, once this broker is unfenced: before that, a
        Metadata response would list no broker.
        """
        settings = self._settings
        controller_names = {listener.name for listener in settings.controller_listeners}
        own = [item for item in settings.listeners if item.name not in controller_names]
        self.listeners = listen(self._network, own, settings.advertised_listeners, self._security)

    async def join(self, incarnation_id: bytes) -> None:
        """Registers the broker, starts its replica fetchers and waits until it is unfenced."""
        await self._lifecycle.register(
            broker_registration_request(
                self._settings,
                self.listeners,
                cluster_id=self.broker.cluster_id,
                incarnation_id=incarnation_id,
                directory_ids=[item.directory_id for item in self._storage.directories],
                previous_epoch=self._storage.previous_broker_epoch,
            )
        )
        await self._metadata.wait_for(lambda image: image.offset >= self._lifecycle.epoch)
        self._is_registered = True
        image = self._metadata.image
        self._fetchers.apply_delta(MetadataDelta.between(MetadataImage(), image), image)
        await self._lifecycle.wait_until_unfenced()
        # The controller has unfenced this broker. Its own image must show that too before
        # clients connect, or a Metadata response would list no broker.
        await self._metadata.wait_for(self._is_unfenced)

    def _is_unfenced(self, image: MetadataImage) -> bool:
        broker = image.brokers.get(self.broker.node_id)
        return broker is not None and not broker.fenced

    def serve(self) -> None:
        """Loads the coordinators of the partitions it leads, and accepts client connections."""
        self._elections.start(self.broker.image)
        self._network.open()

    def abandon(self) -> None:
        """Closes the listeners after a failed start."""
        self._network.close()

    async def shut_down(self) -> None:
        """Moves leadership to other brokers, then finishes the requests that are in progress."""
        await self._lifecycle.controlled_shutdown()
        self.broker.purgatory.release_all()
        self._elections.stop()
        await self._network.drain(DRAIN_MS)
        self._fetchers.stop()
        self.partitions.cleaner.close()
        await self._cleaner_threads.close()
        self.broker.timer.close()

    def close(self) -> bool:
        """Flushes and closes the logs. Returns whether the shutdown was clean."""
        return self.partitions.close(clean=True, broker_epoch=self._lifecycle.epoch)

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies new metadata and settings to everything in this role.

        Raises NodeError if another process is registered as this broker by now.
        """
        self._lifecycle.check_registration(image)
        if delta.configs_changed:
            self._network.settings = SocketServerSettings.of(self.broker.resolver.broker_config)
            if any(kind == ConfigResourceType.CLIENT_METRICS for kind, _ in delta.configs_changed):
                self.broker.telemetry.update(image.configs)
        if delta.quotas_changed:
            self.broker.quotas.update(image.quotas)
            self._network.connection_quotas.set_ip_quotas(image.quotas)
        self.broker.image = image
        if not self._is_registered:
            # Until the image has this broker's registration, it shows leaders of the past. A
            # replica that became leader of such an old epoch, even for a moment, would cut the
            # later epochs out of its leader epoch cache.
            delta = replace(delta, partitions_changed={})
        self.partitions.apply_delta(delta, image)
        if self._is_registered:
            self._fetchers.apply_delta(delta, image)
        self._elections.on_metadata_change(delta, image)
        self._lifecycle.on_metadata_change(delta, image)
        for topic in delta.topics_deleted.values():
            self.broker.metrics.remove_topic(topic.name)
