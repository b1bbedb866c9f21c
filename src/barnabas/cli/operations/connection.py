"""How a command reaches its cluster: the addresses it was given, and a file of settings."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.cli.signals import exit_on_signal

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.errors import KafkaError

T = TypeVar("T")

TIMEOUT_S = 60
"""How long a call may take; the settings may say otherwise."""


@dataclass(slots=True, frozen=True)
class Connection:
    servers: str | None = None
    """host:port,... of brokers."""
    controllers: str | None = None
    """host:port,... of controllers, at their own listeners, in place of brokers."""
    settings: dict[str, str] = field(default_factory=dict)
    connect_timeout_s: float = TIMEOUT_S
    """How long to wait for somebody to answer, when nobody does."""

    def run(self, work: "Callable[[AioAdminClient], Awaitable[T]]") -> T:
        """Run `work` with a client of its own, and say what it says.

        Ctrl-C ends the command, and so does the end of whoever reads what `work` prints.
        """
        import asyncio

        with exit_on_signal():
            return asyncio.run(self._run(work))
        sys.exit(0)

    async def _run(self, work: "Callable[[AioAdminClient], Awaitable[T]]") -> T:
        import asyncio

        from barnabas.client.admin import AioAdminClient
        from barnabas.client.errors import KafkaError, KafkaException

        down: asyncio.Future[KafkaError] = asyncio.get_running_loop().create_future()
        reasons: dict[str, None] = {}

        def told(error: KafkaError) -> None:
            """First of each broker why it cannot be reached, then that none can."""
            if error != KafkaError._ALL_BROKERS_DOWN:
                reasons[error.str()] = None
            elif not down.done():
                why = "; ".join(reasons) or error.str()
                down.set_result(KafkaError(error.code(), f"nobody answers: {why}"))

        admin = AioAdminClient(self.properties(), told)
        working = asyncio.ensure_future(work(admin))
        try:
            either: set[asyncio.Future[Any]] = {working, down}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                self._warn(down.result())
                await asyncio.wait({working}, timeout=self.connect_timeout_s)
            if not working.done():
                raise KafkaException(down.result())
            return working.result()
        finally:
            working.cancel()
            await admin.close()

    def _warn(self, error: "KafkaError") -> None:
        """Where one has to wait for long, one wants to know why."""
        if self.connect_timeout_s >= TIMEOUT_S:
            print(f"WARN {error.str()}; trying for {TIMEOUT_S} s", file=sys.stderr)

    def properties(self) -> dict[str, str]:
        """The settings of a client that connects so."""
        properties = {"client.id": "barnabas-cli", **self.settings}
        if self.servers is not None:
            properties["bootstrap.servers"] = self.servers
        if self.controllers is not None:
            properties.pop("bootstrap.servers", None)
            properties["bootstrap.controllers"] = self.controllers
        return properties
