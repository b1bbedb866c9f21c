"""Detects at once when the process of a broker has died.

Missing heartbeats show that only after broker.session.timeout.ms. But the kernel of a dead process
closes its sockets and refuses new connections to them. So every controller keeps a connection to
each broker. If it breaks, and the broker's address then refuses connections, the process is dead.
A broker that is paused or partitioned does neither; its session expires as in Kafka.
"""

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration
from barnabas.net.tls import TlsContext
from barnabas.node.environment import hold_connection

RECONNECT_S = 1.0
RECONNECT_FIRST_S = 0.02
"""A dying process may still accept for a moment after its connections broke: retry soon."""


class BrokerLivenessMonitor:
    """Monitors each unfenced broker. Calls `on_broker_dead(broker_id, broker_epoch)`."""

    def __init__(
        self,
        node_id: int,
        on_broker_dead: Callable[[int, int], None],
        hold_connection: Callable[[str, int, TlsContext | None], Awaitable[None]] = hold_connection,
        tls_of: Callable[[str, int], TlsContext | None] = lambda *_: None,
    ) -> None:
        """`tls_of` returns the context for a listener's name and security protocol."""
        self._node_id = node_id
        self._on_broker_dead = on_broker_dead
        self._hold_connection = hold_connection
        self._tls_of = tls_of
        self._monitors: dict[int, tuple[int, asyncio.Task[None]]] = {}
        self.dead_broker_epochs: dict[int, int] = {}
        """The epochs of brokers whose death was detected and that have not registered since."""

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Starts to monitor brokers that were unfenced; stops for those fenced or unregistered."""
        for broker_id in delta.brokers_changed:
            broker = image.brokers.get(broker_id)
            is_monitored = broker is not None and not broker.fenced and broker_id != self._node_id
            epoch, task = self._monitors.get(broker_id, (None, None))
            if broker is not None and epoch == broker.epoch and is_monitored:
                continue
            if task is not None:
                task.cancel()
                del self._monitors[broker_id]
            if self.dead_broker_epochs.get(broker_id) != (
                broker.epoch if broker is not None else None
            ):
                self.dead_broker_epochs.pop(broker_id, None)
            if broker is not None and is_monitored:
                monitor = asyncio.get_running_loop().create_task(self._monitor(broker))
                self._monitors[broker_id] = broker.epoch, monitor

    def stop(self) -> None:
        for _, task in self._monitors.values():
            task.cancel()
        self._monitors.clear()

    async def _monitor(self, broker: BrokerRegistration) -> None:
        endpoint = broker.endpoints[0]
        tls = self._tls_of(endpoint.name, endpoint.security_protocol)
        was_reached = False
        pause_s = RECONNECT_FIRST_S
        while True:
            began_s = asyncio.get_running_loop().time()
            try:
                await self._hold_connection(endpoint.host, endpoint.port, tls)
                was_reached = True
            except ConnectionRefusedError:
                if was_reached:
                    break
            except (OSError, TimeoutError):
                pass
            if asyncio.get_running_loop().time() - began_s < RECONNECT_S:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, RECONNECT_S)
            else:
                pause_s = RECONNECT_FIRST_S
        self.dead_broker_epochs[broker.broker_id] = broker.epoch
        self._on_broker_dead(broker.broker_id, broker.epoch)
