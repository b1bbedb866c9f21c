"""What every subcommand that asks a cluster has: where it is, and `--json` for programs.

`asks` gives a command its Connection and its Display; tables are for people, on a terminal with
colours, and `--json` prints the same rows as a list of objects.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.settings import parse_pairs, read_properties

CONNECT_TIMEOUT_S = 3.0
"""How long a person waits for somebody to answer."""


def bootstrap_server_option(command: Callable[..., None]) -> Callable[..., None]:
    """Tell a command `servers`."""
    option = click.option(
        "--bootstrap-server",
        "-b",
        "servers",
        metavar="HOST:PORT,...",
        default="localhost:9092",
        show_default=True,
        envvar="BARNABAS_BOOTSTRAP_SERVER",
        help="Brokers to ask.",
    )
    return option(command)


def command_config_option(command: Callable[..., None]) -> Callable[..., None]:
    """Tell a command the file that `command_config` names."""
    option = click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Settings of the client: security, timeouts.",
    )
    return option(command)


def admin_command(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a `connection` and a `display`."""

    @bootstrap_server_option
    @click.option(
        "--bootstrap-controller",
        "-C",
        "controllers",
        metavar="HOST:PORT,...",
        help="Controllers to ask instead, at their own listeners.",
    )
    @command_config_option
    @click.option("--json", "as_json", is_flag=True, help="For programs: print JSON.")
    @functools.wraps(command)
    def run(
        servers: str,
        controllers: str | None,
        command_config: str | None,
        as_json: bool,
        **options: Any,
    ) -> None:
        connection = Connection(
            servers=None if controllers else servers,
            controllers=controllers,
            settings=read_properties(command_config) if command_config else {},
            connect_timeout_s=CONNECT_TIMEOUT_S,
        )
        command(connection=connection, display=Display(as_json), **options)

    return run


def parse_pair_options(pairs: Sequence[str]) -> Mapping[str, str]:
    """What options such as `--config key=value` say."""
    from barnabas.cli.operations.errors import CommandError
    from barnabas.cli.operations.settings import parse_pairs

    try:
        return parse_pairs(tuple(pairs))
    except CommandError as error:
        raise click.BadParameter(str(error)) from None


Command = Callable[..., None]


def listener_options(
    port: int, *, highest: int = 65535, users: str
) -> Callable[[Command], Command]:
    """Tell a command `host` and `port`; `whose` is who connects there."""

    def with_options(command: Command) -> Command:
        command = click.option(
            "--host",
            default="localhost",
            show_default=True,
            help=f"The name or address to listen on, and where {users} find it.",
        )(command)
        return click.option(
            "--port",
            default=port,
            show_default=True,
            type=click.IntRange(0, highest),
            help=f"The port {users} connect to; 0 for any that is free.",
        )(command)

    return with_options


def override_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--set key=value`, any number of times, as `overrides`."""
    return click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse,
        help="A setting of server.properties; may be given many times.",
    )(command)


def _parse(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    try:
        return parse_pairs(pairs)
    except CommandError as error:
        raise click.BadParameter(str(error)) from None
