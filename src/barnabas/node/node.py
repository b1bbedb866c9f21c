"""One process of a cluster: a controller, a broker, or both on one event loop.

It starts its parts in the order in which they need each other (log directories, controller
listener, metadata log, log recovery, client listeners, broker registration) and stops them in
reverse.
"""

import asyncio
import errno
import logging
from collections.abc import Iterable, Sequence

from barnabas.config import (
    BrokerSettings,
    ConfigResolver,
    ConfigResourceType,
    Listener,
)
from barnabas.controller import QuorumController
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.authorization import NodeAuthorization
from barnabas.node.broker_role import BrokerRole
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.controller_channel import ControllerChannel
from barnabas.node.controller_role import ControllerRole
from barnabas.node.environment import Environment
from barnabas.node.errors import FatalErrors, NodeError, PortInUse
from barnabas.node.gauges import QuorumGauges
from barnabas.node.metadata_snapshots import MetadataSnapshots
from barnabas.node.periodic_tasks import PeriodicTasks
from barnabas.node.quorum import QuorumLeaderMonitor, open_quorum
from barnabas.node.security import NodeSecurity
from barnabas.node.storage import NodeStorage
from barnabas.raft import CommittedBatch, QuorumError, read_bootstrap
from barnabas.replication import resolve_topic_config
from barnabas.security.authentication.jwks import Documents, fetch_documents
from barnabas.server.disk_reads import DiskReads
from barnabas.server.metrics.http_endpoint import HttpEndpoint
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.server.nodes import BrokerNode
from barnabas.wire.errors import KafkaError
from barnabas.wire.records._loops import COMPILED

log = logging.getLogger(__name__)

_REJECTED_SETTINGS = (
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
)
"""Settings that restrict access. To ignore them is worse than not to start."""


class Node:
    """A running process. Build it with `Node.start`."""

    def __init__(
        self,
        settings: BrokerSettings,
        storage: NodeStorage,
        environment: Environment,
        key_documents: Documents,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._authorization = NodeAuthorization(settings.explicit, environment.clock)
        self._environment = environment
        self.settings = settings
        self._storage = storage
        self._fatal = FatalErrors()
        self._threads = environment.threads(loop)
        self._disk_reads = DiskReads(self._threads)
        name = f"node-{settings.node_id}"
        self.metadata = ClusterMetadata()
        self._security = NodeSecurity(
            settings,
            self._threads,
            lambda: self.metadata.image,
            environment.clock,
            key_documents,
        )
        self._broker_peers = environment.peers(loop, name, self._security.to_brokers())
        self._controller_peers = environment.peers(loop, name, self._security.to_controllers())
        self._resolver = ConfigResolver(settings, self.metadata.image.configs)
        self._metrics = MetricsRegistry()
        self._metrics_endpoint = HttpEndpoint(
            self._metrics, self._security.of_metrics(self._authorization.requests)
        )
        self.metrics_address: str | None = None
        self._incarnation_id = environment.random_uuid()
        self._controller_role = self._build_controller() if settings.is_controller else None
        self._controller_listeners = (
            self._controller_role.listen() if self._controller_role is not None else []
        )
        self.quorum = open_quorum(
            settings,
            storage.metadata,
            self._controller_listeners,
            peers=self._controller_peers,
            background=self._threads,
            environment=environment,
        )
        self._metrics.register(QuorumGauges(self.quorum))
        self._channel = ControllerChannel(
            settings.node_id,
            self.quorum,
            self._controller_role.open(self.quorum) if self._controller_role else None,
            self._controller_peers,
        )
        self.snapshots = MetadataSnapshots(
            settings,
            self.quorum,
            lambda: self.metadata.image,
            threads=self._threads,
            clock=environment.clock,
            on_failed=self.on_failure,
        )
        self._broker_role: BrokerRole | None = None
        self.metadata.subscribe(self._on_metadata_change)
        self._tasks = PeriodicTasks(self._fatal, environment.clock)

    @classmethod
    async def start(
        cls, settings: BrokerSettings, environment: Environment | None = None
    ) -> "Node":
        """Starts the node and joins the cluster. Raises NodeError with the reason if it cannot."""
        _require_supported(settings)
        for warning in settings.warnings:
            log.warning("%s", warning)
        if not COMPILED:
            log.warning("the record loops are not compiled: install a C compiler, then reinstall")
        environment = environment or Environment()
        key_documents = await fetch_documents(settings)
        storage = NodeStorage(settings, environment.files())
        try:
            node = cls(settings, storage, environment, key_documents)
            node.quorum.start(node)
        except NodeError:
            storage.abandon()
            raise
        except (OSError, KafkaError, QuorumError) as error:
            storage.abandon()
            raise NodeError(_reason(error)) from error
        try:
            await node._open()
        except (NodeError, asyncio.CancelledError):
            node._abandon()
            raise
        except (OSError, KafkaError, QuorumError) as error:
            node._abandon()
            raise NodeError(_reason(error)) from error
        return node

    @property
    def cluster_id(self) -> str:
        return self._storage.meta.cluster_id

    @property
    def controller(self) -> QuorumController:
        assert self._controller_role is not None, "this node is a broker only"
        return self._controller_role.controller

    @property
    def broker(self) -> BrokerNode:
        assert self._broker_role is not None, "this node is a controller only"
        return self._broker_role.broker

    @property
    def listeners(self) -> list[Listener]:
        """The listeners of the broker, or of the controller if this node is no broker."""
        return self._broker_role.listeners if self._broker_role else self._controller_listeners

    @property
    def address(self) -> str:
        """The host and port where clients connect."""
        return str(self.listeners[0]).partition("://")[2]

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set. Raises NodeError after a fatal error."""
        waiting = [asyncio.create_task(event.wait()) for event in (stop, self._fatal)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if self._fatal.reason:
            raise NodeError(self._fatal.reason)

    async def stop(self) -> None:
        """Shuts down cleanly: moves leadership, finishes requests, flushes and closes the logs."""
        log.info("shutting down: moving leadership to other brokers, then finishing requests")
        self._tasks.stop()
        self._security.tls.stop_reloading()
        if self._broker_role is not None:
            await self._broker_role.shut_down()
        self._metrics_endpoint.close()
        self._security.close()
        await self.snapshots.close()
        await self.quorum.stop()
        if self._controller_role is not None:
            await self._controller_role.close()
        self._controller_peers.close()
        self._broker_peers.close()
        await self._threads.close()
        if self._broker_role is None:
            is_clean = self._storage.close()
        else:
            is_clean = self._broker_role.close()
            is_clean = self._storage.close(except_for=self._storage.directories) and is_clean
        log.info("shut down cleanly" if is_clean else "shut down; the next start will recover logs")

    # Starting

    def _build_controller(self) -> ControllerRole:
        return ControllerRole(
            self.settings,
            self.metadata,
            self._resolver,
            self._security,
            cluster_id=self._storage.meta.cluster_id,
            bootstrap=read_bootstrap(self._storage.metadata.path),
            incarnation_id=self._incarnation_id,
            disk_reads=self._disk_reads,
            metrics=self._metrics,
            environment=self._environment,
            authorizer=self._authorization.requests,
        )

    async def _open(self) -> None:
        self._require_no_failure()
        self._bind_metrics()
        if self._controller_role is not None:
            self._controller_role.register(self._channel, self._controller_listeners)
            self._tasks.every_100_ms(self._controller_role.maintain)
        self._tasks.every_500_ms(self.snapshots.maintain)
        self._tasks.every_500_ms(
            QuorumLeaderMonitor(self.quorum, self.cluster_id, self._fatal).check
        )
        if self.settings.is_broker:
            await self._join_brokers()
        await self._metrics_endpoint.serve()
        # The metadata log may have other certificates than the file.
        await self._security.tls.reload(self._resolver.broker_config)
        if self._broker_role is not None:
            self._broker_role.serve()
            self._tasks.maintain_partitions(self._broker_role.partitions)
            self._storage.sync_recovered(self._threads, self._broker_role.partitions)
        log.info(
            "node %d of cluster %s listens on %s",
            self.settings.node_id,
            self.cluster_id,
            ", ".join(map(str, self.listeners)),
        )

    async def _join_brokers(self) -> None:
        await self._recover_logs()
        role = self._broker_role = BrokerRole(
            self.settings,
            self._storage,
            self.metadata,
            self._resolver,
            self._security,
            self._channel,
            self._broker_peers,
            self._threads,
            self._disk_reads,
            self._metrics,
            self._environment,
            self._authorization.requests,
        )
        role.listen()
        joining = asyncio.create_task(role.join(self._incarnation_id))
        failing = asyncio.create_task(self._fatal.wait())
        await asyncio.wait([joining, failing], return_when=asyncio.FIRST_COMPLETED)
        failing.cancel()
        self._require_no_failure()
        await joining
        # The image has this broker's registration, and so all ACLs from before it.
        self._authorization.on_loaded()

    async def _recover_logs(self) -> None:
        """Recovers logs in threads of their own: the metadata log is flushed meanwhile."""
        threads = self._environment.threads(asyncio.get_running_loop())
        try:
            await self._storage.recover(
                threads,
                lambda topic: resolve_topic_config(topic, self._resolver).log,
                threads_per_directory=self.settings["num.recovery.threads.per.data.dir"],
            )
        finally:
            await threads.close()

    def _bind_metrics(self) -> None:
        """Binds the port before anything else starts; it is served once the node is up."""
        setting = "barnabas.metrics.listener"
        if not self.settings[setting]:
            return
        host, _, port = self.settings[setting].rpartition(":")
        try:
            bound_port = self._metrics_endpoint.bind(host.strip("[]"), int(port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(host.strip("[]"), int(port), setting) from error
            raise NodeError(f"{setting} cannot bind {host}:{port}: {error.strerror}.") from error
        self.metrics_address = f"{host}:{bound_port}"

    def _abandon(self) -> None:
        """Releases everything after a failed start."""
        self._tasks.stop()
        self._security.tls.stop_reloading()
        self._metrics_endpoint.close()
        self._security.close()
        if self._broker_role is not None:
            self._broker_role.abandon()
        if self._controller_role is not None:
            self._controller_role.abandon()
        self.quorum.abandon()
        self._controller_peers.close()
        self._broker_peers.close()
        self._storage.abandon()

    def _require_no_failure(self) -> None:
        if self._fatal.reason:
            raise NodeError(self._fatal.reason)

    # Events of the quorum (barnabas.raft.QuorumListener)

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        try:
            self.metadata.apply(batches)
        except NodeError as error:
            self._fatal.report(str(error))
            return
        quorum = self.quorum
        if quorum.is_caught_up and self.metadata.image.offset + 1 >= quorum.high_watermark:
            self._authorization.on_loaded()
        if self._controller_role is not None:
            self._controller_role.on_published(batches[-1].last_offset)

    def on_snapshot(self, batches: Iterable[CommittedBatch]) -> None:
        try:
            self.metadata.load_snapshot(batches)
        except NodeError as error:
            self._fatal.report(str(error))

    def on_became_leader(self, epoch: int) -> None:
        self._authorization.on_loaded()  # a leader has everything that was committed before
        if self._controller_role is not None:
            self._controller_role.on_leader_elected(epoch)

    def on_resigned(self, epoch: int) -> None:
        if self._controller_role is not None:
            self._controller_role.on_resigned()

    def on_leader_changed(self, leader_id: int | None, epoch: int) -> None:
        # The local controller logs this itself, once it is active.
        if leader_id not in (None, self.settings.node_id):
            log.info("node %d is the active controller, in epoch %d", leader_id, epoch)

    def on_failure(self, error: OSError) -> None:
        self._fatal.report(
            f"The metadata log cannot be written ({error}). Free or replace the disk, then "
            "restart this node."
        )

    def _on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies new metadata: ACLs and settings first, because the rest reads them."""
        try:
            self._authorization.on_metadata_change(delta, image)
        except NodeError as error:
            self._fatal.report(str(error))
        self._resolver.configs = image.configs
        if delta.configs_changed:
            self._resolver.invalidate(delta.configs_changed)
            if self._is_own_change(delta):
                self._security.tls.on_settings_change(self._resolver.broker_config)
        if delta.scram_changed:
            self._security.on_scram_change()
        if self._broker_role is not None:
            try:
                self._broker_role.on_metadata_change(delta, image)
            except NodeError as error:
                self._fatal.report(str(error))
        if self._controller_role is not None:
            self._controller_role.on_metadata_change(delta, image)

    def _is_own_change(self, delta: MetadataDelta) -> bool:
        """Whether settings of this node, or of all nodes, have changed."""
        names = ("", str(self.settings.node_id))
        return any((ConfigResourceType.BROKER, name) in delta.configs_changed for name in names)


def _require_supported(settings: BrokerSettings) -> None:
    """Raises NodeError for settings that this version cannot serve."""
    for name in _REJECTED_SETTINGS:
        if settings[name]:
            raise NodeError(
                f"{name} is {settings[name]}; this version has no policies and would allow "
                "everything: remove the setting if that is what you want."
            )


def _reason(error: Exception) -> str:
    """Returns the message of an error."""
    match error:
        case OSError(strerror=str(reason)) | KafkaError(message=str(reason)) if reason:
            return reason
    return str(error)
