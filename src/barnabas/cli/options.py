"""Options that several subcommands share: the brokers, `--json`, the listener, `--set`.

`admin_command` gives a subcommand its Connection and its Display, `client_command` the settings of
a producer or consumer.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.settings import client_settings, parse_pairs, read_properties
from barnabas.cli.signals import exit_on_signal

CONNECT_TIMEOUT_S = 3.0
"""How long a subcommand tries to reach a broker."""

Command = Callable[..., None]


def bootstrap_server_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--bootstrap-server`, passed as `servers`."""
    option = click.option(
        "--bootstrap-server",
        "-b",
        "servers",
        metavar="HOST:PORT,...",
        default="localhost:9092",
        show_default=True,
        envvar="BARNABAS_BOOTSTRAP_SERVER",
        help="Brokers to connect to.",
    )
    return option(command)


def command_config_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--command-config`, the path of a file."""
    option = click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="A file of client settings, such as security and timeouts.",
    )
    return option(command)


def admin_command(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of an admin client; passes `connection` and `display`."""

    @bootstrap_server_option
    @click.option(
        "--bootstrap-controller",
        "-C",
        "controllers",
        metavar="HOST:PORT,...",
        help="Controllers to connect to instead of brokers.",
    )
    @command_config_option
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    """Parses the values of an option such as `--config key=value`."""
    try:
        return parse_pairs(pairs)
    except CommandError as error:
        raise click.BadParameter(str(error)) from None


def listener_options(
    port: int, *, highest: int = 65535, users: str
) -> Callable[[Command], Command]:
    """Adds `--host` and `--port`; the help texts name the `users` that connect."""

    def with_options(command: Command) -> Command:
        command = click.option(
            "--host",
            default="localhost",
            show_default=True,
            help=f"The host name or address to listen on, which {users} connect to.",
        )(command)
        return click.option(
            "--port",
            default=port,
            show_default=True,
            type=click.IntRange(0, highest),
            help=f"The port that {users} connect to; 0 for any free port.",
        )(command)

    return with_options


def stop_with_stdin_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--stop-with-stdin`, a flag."""
    return click.option(
        "--stop-with-stdin",
        is_flag=True,
        help="Stop when standard input is closed, for a parent process that may be killed.",
    )(command)


def override_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--set key=value`, which can be repeated; passed as `overrides`."""
    return click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse_overrides,
        help="A setting of server.properties; can be repeated.",
    )(command)


def _parse_overrides(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> Mapping[str, str]:
    return parse_pair_options(pairs)


def client_command(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of a client; passes its `settings` and a `display`."""

    @bootstrap_server_option
    @command_config_option
    @click.option("-X", "pairs", multiple=True, metavar="NAME=VALUE", help="A client setting.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(command)
    def run(
        servers: str,
        command_config: str | None,
        pairs: tuple[str, ...],
        as_json: bool,
        **options: Any,
    ) -> None:
        defaults = {"bootstrap.servers": servers, "client.id": "barnabas-cli"}
        settings = client_settings(command_config, pairs, defaults)
        with exit_on_signal():
            command(settings=settings, display=Display(as_json), **options)

    return run


def require_topic(client: Any, topic: str | None = None) -> Collection[int]:
    """Returns the partitions of the topic.

    Raises an error within seconds if no broker responds or the topic does not exist.
    """
    from barnabas.client.errors import KafkaError, KafkaException

    metadata = client.list_topics(topic, timeout=CONNECT_TIMEOUT_S)
    if topic is None:
        return ()
    error = metadata.topics[topic].error
    if error == KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise CommandError(
            f"Topic {topic} does not exist; create it with `barnabas topics create {topic}`."
        )
    if error is not None:
        raise KafkaException(error)
    partitions: Collection[int] = metadata.topics[topic].partitions
    return partitions
