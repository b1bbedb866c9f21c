"""Notices at once when the process of a broker has died.

A controller learns of it by the heartbeats that do not come, after broker.session.timeout.ms. But
the kernel of a dead process closes its sockets and refuses new connections to them: so every
controller keeps a connection to each broker that it can reach. If it breaks, and the broker's
address then refuses connections, nobody is there. A broker that is paused or cut off does neither.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.metadata.states import BrokerState
from barnabas.node.surroundings import hold_connection

RECONNECT_S = 1.0
RECONNECT_FIRST_S = 0.02
"""A process that dies may still accept for a moment after it hung up: look again soon."""

log = logging.getLogger(__name__)


class Vigil:
    """One watch for each broker that may lead. `died` is told whose process is gone."""

    def __init__(
        self,
        node_id: int,
        died: Callable[[int, int], None],
        hold_connection: Callable[[str, int], Awaitable[None]] = hold_connection,
    ) -> None:
        self._node_id = node_id
        self._died = died
        self._hold_connection = hold_connection
        self._watches: dict[int, tuple[int, asyncio.Task[None]]] = {}
        self.dead: dict[int, int] = {}
        """The epochs of brokers that were seen to die, and have not come back since."""

    def follow(self, delta: Delta, image: Image) -> None:
        """Watch who was let in; let go of who is fenced, or gone."""
        for broker_id in delta.brokers_changed:
            broker = image.brokers.get(broker_id)
            is_watched = broker is not None and not broker.fenced and broker_id != self._node_id
            epoch, task = self._watches.get(broker_id, (None, None))
            if broker is not None and epoch == broker.epoch and is_watched:
                continue
            if task is not None:
                task.cancel()
                del self._watches[broker_id]
            if self.dead.get(broker_id) != (broker.epoch if broker is not None else None):
                self.dead.pop(broker_id, None)
            if broker is not None and is_watched:
                watch = asyncio.get_running_loop().create_task(self._watch(broker))
                self._watches[broker_id] = broker.epoch, watch

    def end(self) -> None:
        for _, task in self._watches.values():
            task.cancel()
        self._watches.clear()

    async def _watch(self, broker: BrokerState) -> None:
        endpoint = broker.endpoints[0]
        was_reached = False
        pause_s = RECONNECT_FIRST_S
        while True:
            began_s = asyncio.get_running_loop().time()
            try:
                await self._hold_connection(endpoint.host, endpoint.port)
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
        log.warning(
            "broker %d hung up, and nobody listens at %s:%d any more: it has died",
            broker.broker_id,
            endpoint.host,
            endpoint.port,
        )
        self.dead[broker.broker_id] = broker.epoch
        self._died(broker.broker_id, broker.epoch)
