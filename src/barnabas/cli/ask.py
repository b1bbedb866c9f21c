"""Asking a running cluster: the first of the given addresses that answers."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import click

from barnabas.config.addresses import Endpoint, parse_endpoint
from barnabas.server.peers import SocketPeers
from barnabas.wire.schema import Message

TIMEOUT_MS = 10_000


class Asking:
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
                return outcome
            failure = outcome
        raise failure

    def close(self) -> None:
        self._peers.close()


def bootstrap(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--bootstrap-server`, as `addresses`."""
    return click.option(
        "--bootstrap-server",
        "-b",
        "addresses",
        metavar="HOST:PORT,...",
        default="localhost:9092",
        show_default=True,
        callback=_parse_addresses,
        help="Brokers to ask, the first that answers.",
    )(command)


def converse(addresses: Sequence[Endpoint], talk: "Callable[[Asking], Any]") -> Any:
    """Run `talk`, a coroutine function; where nobody answers, end with one line that says so."""

    async def run() -> Any:
        asking = Asking(addresses)
        try:
            return await talk(asking)
        finally:
            asking.close()

    try:
        return asyncio.run(run())
    except OSError as failure:
        asked = ", ".join(f"{host}:{port}" for host, port in addresses)
        reason = failure.strerror or failure
        raise click.ClickException(f"nobody answers at {asked}: {reason}") from None


def _parse_addresses(
    _context: click.Context, _parameter: click.Parameter, text: str
) -> list[Endpoint]:
    try:
        return [parse_endpoint(each.strip()) for each in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
