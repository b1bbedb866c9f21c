"""The connection of a command to its cluster: addresses, and client settings."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.errors import KafkaError

T = TypeVar("T")

TIMEOUT_S = 60
"""How long a call may take, unless the settings say otherwise."""


@dataclass(slots=True, frozen=True)
class Connection:
    servers: str | None = None
    """host:port,... of brokers."""
    controllers: str | None = None
    """host:port,... of controllers, instead of brokers."""
    settings: dict[str, str] = field(default_factory=dict)
    connect_timeout_s: float = TIMEOUT_S
    """How long to wait after all brokers were found unreachable."""

    def run(self, work: "Callable[[AioAdminClient], Awaitable[T]]") -> T:
        """Runs `work` with an admin client and returns its result.

        Raises CommandError if the client rejects an argument that no broker would accept.
        """
        import asyncio

        try:
            return asyncio.run(self._run(work))
        except ValueError as error:
            raise CommandError(str(error)) from None

    async def _run(self, work: "Callable[[AioAdminClient], Awaitable[T]]") -> T:
        import asyncio

        from barnabas.client.admin import AioAdminClient
        from barnabas.client.errors import KafkaError, KafkaException

        down: asyncio.Future[KafkaError] = asyncio.get_running_loop().create_future()
        reasons: dict[str, bool] = {}
        """The errors of brokers, and whether the client tries again."""

        def on_error(error: KafkaError) -> None:
            """The client reports the error of each broker, then that all are down."""
            if error != KafkaError._ALL_BROKERS_DOWN:
                reasons[error.str()] = error.retriable()
            elif not down.done():
                message = "; ".join(reasons) or error.str()
                down.set_result(KafkaError(error.code(), f"no broker responds: {message}"))

        admin = AioAdminClient(self.properties(), on_error)
        task = asyncio.ensure_future(work(admin))
        try:
            either: set[asyncio.Future[Any]] = {task, down}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                if all(reasons.values()):
                    self._warn(down.result())
                await asyncio.wait({task}, timeout=self.connect_timeout_s)
            if not task.done():
                raise KafkaException(down.result())
            return task.result()
        finally:
            task.cancel()
            await admin.close()

    def _warn(self, error: "KafkaError") -> None:
        """Explains a long wait."""
        if self.connect_timeout_s >= TIMEOUT_S:
            print(f"WARN {error.str()}; trying for {TIMEOUT_S} s", file=sys.stderr)

    def properties(self) -> dict[str, str]:
        """Returns the settings of a client with this connection."""
        properties = {"client.id": "barnabas-cli", **self.settings}
        if self.servers is not None:
            properties["bootstrap.servers"] = self.servers
        if self.controllers is not None:
            properties.pop("bootstrap.servers", None)
            properties["bootstrap.controllers"] = self.controllers
        return properties
