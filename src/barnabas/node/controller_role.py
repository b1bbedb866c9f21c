"""The controller role of a node: its listener, the controller, the monitor of brokers."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.config import BrokerSettings, ConfigResolver, Listener
from barnabas.controller import QuorumController
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import CONTROLLER_REGISTRATION_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import NO_LEADER, BrokerRegistration
from barnabas.node.broker_liveness import BrokerLivenessMonitor
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.controller_channel import ControllerChannel
from barnabas.node.environment import Environment
from barnabas.node.listeners import controller_registration_request, listen
from barnabas.node.security import NodeSecurity
from barnabas.raft import Quorum
from barnabas.server.authorization import RequestAuthorizer
from barnabas.server.disk_reads import DiskReads
from barnabas.server.metrics.gauges import ControllerGauges
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.server.network.socket_server import SocketServerSettings
from barnabas.server.nodes import ControllerNode
from barnabas.server.purgatory import Purgatory
from barnabas.server.quotas import RequestQuotas
from barnabas.server.timer import Timer
from barnabas.wire.errors import ErrorCode

RETRY_S = 0.5
REGISTRATION_TIMEOUT_MS = 5_000
DRAIN_MS = 1_000

REGISTERED = "is registered"
UNREGISTERED = "is unregistered"
FENCED = "is fenced"
UNFENCED = "is unfenced"
SHUTTING_DOWN = "is in controlled shutdown"

log = logging.getLogger(__name__)


class ControllerRole:
    """Is active while its node leads the quorum; serves other nodes at all times."""

    def __init__(
        self,
        settings: BrokerSettings,
        metadata: ClusterMetadata,
        resolver: ConfigResolver,
        security: NodeSecurity,
        *,
        cluster_id: str,
        bootstrap: Sequence[bytes],
        incarnation_id: bytes,
        disk_reads: DiskReads,
        metrics: MetricsRegistry,
        environment: Environment,
        authorizer: RequestAuthorizer | None,
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._settings = settings
        self._security = security
        self._environment = environment
        self._metadata = metadata
        self._bootstrap = bootstrap
        self._incarnation_id = incarnation_id
        self._timer = Timer(loop)
        self._node = ControllerNode(
            node_id=settings.node_id,
            cluster_id=cluster_id,
            settings=settings,
            resolver=resolver,
            image=metadata.image,
            purgatory=Purgatory(self._timer),
            timer=self._timer,
            disk_reads=disk_reads,
            authorizer=authorizer,
            quotas=RequestQuotas.of(settings, loop, metadata.image.quotas),
            metrics=metrics,
            clock=environment.clock,
            monotonic_ns=environment.monotonic_ns,
        )
        network_settings = SocketServerSettings.of(resolver.broker_config)
        self._network = environment.network(self._node, network_settings, loop)
        metrics.register(ControllerGauges(self._node))
        self._event_log = BrokerEventLog(lambda: self.controller.is_active)
        self._liveness = BrokerLivenessMonitor(
            settings.node_id,
            self._on_broker_dead,
            environment.hold_connection,
            security.tls.to_monitored,
        )
        self._registering: asyncio.Task[None] | None = None

    def listen(self) -> list[Listener]:
        """Binds the controller's listeners. Returns them as advertised to other nodes."""
        settings = self._settings
        return listen(
            self._network,
            settings.controller_listeners,
            settings.advertised_controller_listeners,
            self._security,
        )

    def open(self, quorum: Quorum) -> ControllerNode:
        """Accepts connections of other nodes and tools from now on."""
        self.controller = QuorumController(
            quorum,
            self._settings,
            cluster_id=self._node.cluster_id,
            clock=self._environment.clock,
            monotonic=self._monotonic_ms,
            image=lambda: self._metadata.image,
            random=self._environment.random,
        )
        self._node.quorum = quorum
        self._node.controller = self.controller
        self._network.open()
        return self._node

    # Events of the quorum

    def on_leader_elected(self, epoch: int) -> None:
        self.controller.activate(
            epoch, self._bootstrap, in_transaction=self._metadata.in_transaction
        )
        for broker_id, broker_epoch in self._liveness.dead_broker_epochs.items():
            self._on_broker_dead(broker_id, broker_epoch)

    def on_resigned(self) -> None:
        self.controller.resign()

    def on_published(self, offset: int) -> None:
        self.controller.on_published(offset)

    # Other events

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.quotas_changed:
            self._node.quotas.update(image.quotas)
        self._node.image = image
        self._event_log.on_metadata_change(delta, image)
        self._liveness.on_metadata_change(delta, image)

    def register(self, channel: ControllerChannel, listeners: Sequence[Listener]) -> None:
        """Registers this controller once there is an active one."""
        self._registering = asyncio.create_task(self._register(channel, listeners))

    def maintain(self, _: int) -> None:
        self.controller.run_periodic_tasks()

    def abandon(self) -> None:
        """Closes the listeners after a failed start."""
        if self._registering is not None:
            self._registering.cancel()
        self._liveness.stop()
        self._network.close()

    async def close(self) -> None:
        """Stops serving. The quorum has resigned before this."""
        if self._registering is not None:
            self._registering.cancel()
        self._liveness.stop()
        await self._network.drain(DRAIN_MS)
        self._timer.close()

    async def _register(self, channel: ControllerChannel, listeners: Sequence[Listener]) -> None:
        request = controller_registration_request(self._settings, listeners, self._incarnation_id)
        while True:
            if self._metadata.image.metadata_level >= CONTROLLER_REGISTRATION_FROM:
                response = await channel.handle(request, timeout_ms=REGISTRATION_TIMEOUT_MS)
                if response.error_code == ErrorCode.NONE:
                    return
                code = ErrorCode.of(response.error_code)
                if code not in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT):
                    log.warning("the active controller did not register this one: %s", code.name)
            await asyncio.sleep(RETRY_S)

    def _monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _on_broker_dead(self, broker_id: int, epoch: int) -> None:
        """Fences a broker whose process has exited, unless it was fenced by its shutdown."""
        broker = self._metadata.image.brokers.get(broker_id)
        if not self.controller.is_active or broker is None or broker.epoch != epoch:
            return
        if not broker.fenced and not broker.in_controlled_shutdown:
            endpoint = broker.endpoints[0]
            log.warning(
                "broker %d is dead: its connection broke and %s:%d refuses connections",
                broker_id,
                endpoint.host,
                endpoint.port,
            )
        self.controller.fence_broker(broker_id)


class BrokerEventLog:
    """Logs one line per change of a broker's state while this node's controller is active."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        self._is_active = is_active
        self._brokers: dict[int, BrokerRegistration] = {}

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for broker_id in sorted(delta.brokers_changed):
            before = self._brokers.pop(broker_id, None)
            after = image.brokers.get(broker_id)
            if after is not None:
                self._brokers[broker_id] = after
            event = _event(before, after)
            if event is not None and self._is_active():
                _log_event(broker_id, event, delta)


def _event(before: BrokerRegistration | None, after: BrokerRegistration | None) -> str | None:
    """Returns what has happened to a broker, or None if it has the same state as before."""
    if after is None:
        return UNREGISTERED if before is not None else None
    if before is None or before.epoch != after.epoch:
        return REGISTERED if after.fenced else UNFENCED
    before_state, after_state = _state_of(before), _state_of(after)
    return after_state if after_state != before_state else None


def _state_of(broker: BrokerRegistration) -> str:
    if broker.fenced:
        return FENCED
    return SHUTTING_DOWN if broker.in_controlled_shutdown else UNFENCED


def _log_event(broker_id: int, event: str, delta: MetadataDelta) -> None:
    changed = delta.partitions_changed.values()
    if not changed or event == REGISTERED:
        # A broker that was killed and has restarted leads its partitions again once unfenced.
        log.info("broker %d %s", broker_id, event)
        return
    offline = sum(partition.leader == NO_LEADER for partition in changed)
    log.log(
        logging.WARNING if offline and event == FENCED else logging.INFO,
        "broker %d %s: %d partitions changed, %d of them are offline",
        broker_id,
        event,
        len(changed),
        offline,
    )
