"""How a command reaches its cluster: the addresses it was given, and a file of settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from barnabas.cli.work.refused import Refused

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Connection:
    servers: str | None = None
    """host:port,... of brokers."""
    controllers: str | None = None
    """host:port,... of controllers, at their own listeners, in place of brokers."""
    settings: dict[str, str] = field(default_factory=dict)

    def ask(self, work: "Callable[[AioAdminClient], Awaitable[T]]") -> T:
        """Run `work` with a client of its own, and say what it says."""
        import asyncio

        from barnabas.client.admin import AioAdminClient

        async def run() -> T:
            admin = AioAdminClient(self.properties())
            try:
                return await work(admin)
            finally:
                await admin.close()

        return asyncio.run(run())

    def properties(self) -> dict[str, str]:
        """The settings of a client that connects so."""
        properties = {"client.id": "barnabas-cli", **self.settings}
        if self.servers is not None:
            properties["bootstrap.servers"] = self.servers
        if self.controllers is not None:
            properties.pop("bootstrap.servers", None)
            properties["bootstrap.controllers"] = self.controllers
        return properties


def read_properties(file: str | Path) -> dict[str, str]:
    """The pairs of a .properties file, such as `--command-config` names."""
    from barnabas.config.properties import parse

    try:
        # Java's encoding of properties, so that the file means to us what it means to Kafka.
        return parse(Path(file).read_text(encoding="latin-1"))
    except (OSError, ValueError) as error:
        raise Refused(f"cannot read {file}: {error}") from None
