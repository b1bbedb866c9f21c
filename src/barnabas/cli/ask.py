"""Asking a running cluster: the first of the given addresses that answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import click

from barnabas.config.addresses import Endpoint, parse_endpoint
from barnabas.net import SocketPeers
from barnabas.wire.schema import Message

TIMEOUT_MS = 3_000
"""How long a node may take: it answers within milliseconds, if at all."""

T = TypeVar("T")


class Conversation:
    """A conversation with one node of the cluster."""

    def __init__(self, addresses: Sequence[Endpoint]) -> None:
        self._addresses = addresses
        self._peers = SocketPeers(asyncio.get_running_loop(), "barnabas-cli")

    async def ask(self, request: Message, timeout_ms: int = TIMEOUT_MS) -> Any:
        """The response; OSError if nobody gives one."""
        failure: OSError = ConnectionError("no address was given")
        for host, port in self._addresses:
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._peers.at(host, port, "admin").send(request, timeout_ms, answer.set_result)
            outcome = await answer
            if not isinstance(outcome, OSError):
                self._addresses = [Endpoint(host, port)]
                return outcome
            failure = outcome
        raise failure

    def go_to(self, host: str, port: int) -> None:
        """Ask this one from now on."""
        self._addresses = [Endpoint(host, port)]

    def close(self) -> None:
        self._peers.close()


def bootstrap(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--bootstrap-server`, as `servers`."""
    return click.option(
        "--bootstrap-server",
        "-b",
        "servers",
        metavar="HOST:PORT,...",
        default="localhost:9092",
        show_default=True,
        callback=parse_addresses,
        help="Brokers to ask, the first that answers.",
    )(command)


def converse(addresses: Sequence[Endpoint], talk: Callable[[Conversation], Awaitable[T]]) -> T:
    """Run `talk`; where nobody answers, end with one line that says so."""

    async def run() -> T:
        conversation = Conversation(addresses)
        try:
            return await talk(conversation)
        finally:
            conversation.close()

    try:
        return asyncio.run(run())
    except OSError as failure:
        asked = ", ".join(f"{host}:{port}" for host, port in addresses)
        reason = failure.strerror or failure
        raise click.ClickException(f"nobody answers at {asked}: {reason}") from None


def parse_addresses(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> list[Endpoint] | None:
    """host:port,... of an option; None if it was not given."""
    if text is None:
        return None
    try:
        return [parse_endpoint(each.strip()) for each in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
