"""The controller of a node: its listener, its decisions while it leads, its watch over brokers."""

import asyncio
import logging
from collections.abc import Sequence

from barnabas.config import BrokerSettings, Listener, Resolver
from barnabas.controller import Controller
from barnabas.metadata.delta import Delta
from barnabas.metadata.features import CONTROLLER_REGISTRATION_FROM
from barnabas.metadata.image import Image
from barnabas.node import registration
from barnabas.node.chronicle import Chronicle
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.controller_channel import ControllerChannel
from barnabas.node.listening import listen
from barnabas.node.surroundings import Surroundings
from barnabas.node.vigil import Vigil
from barnabas.raft import Quorum
from barnabas.server.controller_gauges import ControllerGauges
from barnabas.server.controller_node import ControllerNode
from barnabas.server.metrics import Metrics
from barnabas.server.network import NetworkSettings
from barnabas.server.purgatory import Purgatory
from barnabas.server.timer import Timer
from barnabas.wire.errors import ErrorCode

RETRY_S = 0.5
ASK_TIMEOUT_MS = 5_000
DRAIN_MS = 1_000

log = logging.getLogger(__name__)


class ControllerSide:
    """Decides while its node leads the quorum; at all times answers the other nodes."""

    def __init__(
        self,
        settings: BrokerSettings,
        metadata: ClusterMetadata,
        resolver: Resolver,
        *,
        cluster_id: str,
        bootstrap: Sequence[bytes],
        incarnation_id: bytes,
        metrics: Metrics,
        surroundings: Surroundings,
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._settings = settings
        self._surroundings = surroundings
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
            metrics=metrics,
            clock=surroundings.clock,
        )
        network_settings = NetworkSettings.of(resolver.broker_config)
        self._network = surroundings.network(self._node, network_settings, loop)
        metrics.register(ControllerGauges(self._node))
        self._chronicle = Chronicle(lambda: self.controller.is_active)
        self._vigil = Vigil(settings.node_id, self._broker_died, surroundings.hold_connection)
        self._registering: asyncio.Task[None] | None = None

    def listen(self) -> list[Listener]:
        """Take the controller's addresses; what to tell other nodes of them."""
        settings = self._settings
        return listen(
            self._network, settings.controller_listeners, settings.advertised_controller_listeners
        )

    def take_part(self, quorum: Quorum) -> ControllerNode:
        """Answer other nodes from now on: voters, brokers, and who asks a controller."""
        self.controller = Controller(
            quorum,
            self._settings,
            cluster_id=self._node.cluster_id,
            clock=self._surroundings.clock,
            monotonic=self._monotonic_ms,
            image=lambda: self._metadata.image,
            random=self._surroundings.random,
        )
        self._node.quorum = quorum
        self._node.controller = self.controller
        self._network.open()
        return self._node

    # What the quorum tells

    def leads(self, epoch: int) -> None:
        self.controller.activate(
            epoch, self._bootstrap, in_transaction=self._metadata.in_transaction
        )
        for broker_id in self._vigil.dead:
            self.controller.presumed_dead(broker_id)

    def resigned(self) -> None:
        self.controller.resign()

    def published(self, offset: int) -> None:
        self.controller.published(offset)

    # What else happens

    def follow(self, delta: Delta, image: Image) -> None:
        """The metadata changed."""
        self._node.image = image
        self._chronicle.follow(delta, image)
        self._vigil.follow(delta, image)

    def register(self, channel: ControllerChannel, listeners: Sequence[Listener]) -> None:
        """Make this controller known to the cluster, as soon as there is somebody to tell."""
        self._registering = asyncio.create_task(self._register(channel, listeners))

    def maintain(self, _: int) -> None:
        self.controller.maintain()

    async def close(self) -> None:
        """Let go of everybody; the quorum has found another leader, or none."""
        if self._registering is not None:
            self._registering.cancel()
        self._vigil.end()
        await self._network.drain(DRAIN_MS)
        self._timer.close()

    async def _register(self, channel: ControllerChannel, listeners: Sequence[Listener]) -> None:
        request = registration.controller_request(self._settings, listeners, self._incarnation_id)
        while True:
            if self._metadata.image.metadata_level >= CONTROLLER_REGISTRATION_FROM:
                response = await channel.handle(request, timeout_ms=ASK_TIMEOUT_MS)
                if response.error_code == ErrorCode.NONE:
                    return
                code = ErrorCode.of(response.error_code)
                if code not in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT):
                    log.warning("the active controller did not register this one: %s", code.name)
            await asyncio.sleep(RETRY_S)

    def _monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _broker_died(self, broker_id: int, epoch: int) -> None:
        broker = self._metadata.image.brokers.get(broker_id)
        if broker is not None and broker.epoch == epoch:
            self.controller.presumed_dead(broker_id)
