"""The delay of a connection whose client is over its quota."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection


class ConnectionThrottle:
    """Until it ends, nothing is read from the connection, and no request is started."""

    __slots__ = ("_connection", "_loop", "timer")

    def __init__(self, connection: "ClientConnection", loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self.timer: asyncio.TimerHandle | None = None

    def start(self, delay_ms: int) -> None:
        """Starts a delay; the longest of several counts."""
        until_s = self._loop.time() + delay_ms / 1000
        if self.timer is not None:
            if self.timer.when() >= until_s:
                return
            self.timer.cancel()
        self.timer = self._loop.call_at(until_s, self.end)
        self._connection.is_throttled = True

    def end(self) -> None:
        """Starts the requests that had to wait."""
        self.cancel()
        self._connection.resume()

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self._connection.is_throttled = False
