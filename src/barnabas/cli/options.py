"""Options that several subcommands share: the brokers, `--json`, the listener, `--set`.

`admin_command` gives a subcommand its Connection and its Display, `client_command` the settings of
a producer or consumer.
"""

import functools
import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError, InvalidRegexError, parse_list_regex
from barnabas.cli.operations.settings import client_settings, parse_pairs, read_properties

CONNECT_TIMEOUT_S = 3.0
"""How long a subcommand tries to reach a broker."""

_CREATION_POLL_S = 0.05


class _Integer(click.types.IntParamType):
    """A number that fits into a request. Unlike that of IntRange, its help shows no bounds."""

    def __init__(self, lowest: int, bits: int) -> None:
        self._lowest = lowest
        self._highest = (1 << bits) - 1

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number < self._lowest:
            self.fail(f"{number} is less than {self._lowest}.", param, ctx)
        if number > self._highest:
            self.fail(f"{number} is more than {self._highest}.", param, ctx)
        return number


INT32 = _Integer(-(1 << 31), 31)
INT64 = _Integer(-(1 << 63), 63)
POSITIVE_INT32 = _Integer(1, 31)
PARTITION = _Integer(0, 31)

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


class CommandGroup(click.Group):
    """Subcommands in the order of their declarations; suggests one for an unknown name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        fail_with_suggestion(ctx, args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def fail_with_suggestion(ctx: click.Context, name: str, commands: Collection[str]) -> None:
    """Fails if the name is not that of a command but close to one."""
    if name in commands or ctx.resilient_parsing:
        return
    from barnabas.config.unknown_names import find_similar

    similar = find_similar(name, commands)
    if similar is not None:
        ctx.fail(f"No such command '{name}'. Did you mean '{similar}'?")


class Seconds(click.FloatRange):
    """A finite number of seconds that is not negative."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return seconds


def registry_option(default: str | None = None) -> Callable[[Command], Command]:
    """Adds `--registry`, the URL of a schema registry, and `--registry-config`, a file."""

    def add(command: Command) -> Command:
        command = click.option(
            "--registry-config",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            envvar="BARNABAS_SCHEMA_REGISTRY_CONFIG",
            help="A file of settings of the registry's client, such as basic.auth.user.info.",
        )(command)
        return click.option(
            "--registry",
            metavar="URL",
            default=default,
            show_default=default is not None,
            envvar="BARNABAS_SCHEMA_REGISTRY",
            help="The schema registry, such as http://host:8081.",
        )(command)

    return add


def parse_regex(pattern: str | None) -> "re.Pattern[str] | None":
    """Parses the argument PATTERN of a command."""
    try:
        return parse_list_regex(pattern)
    except InvalidRegexError as error:
        hint = f"; to match any text, write .{error.regex}" if error.regex[0] in "*?" else ""
        raise click.BadParameter(
            f"{error.regex!r} is not a regular expression: {error.reason}{hint}",
            param_hint="PATTERN",
        ) from None


def yes_option(command: Command) -> Command:
    """Adds `--yes`, a flag for `confirm`."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm(question: str, *, yes: bool) -> None:
    """Asks before a command that cannot be undone, unless `yes` is given.

    Raises click.Abort for any other answer than yes, and CommandError if nobody can answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Standard input is not a terminal: confirm with --yes.")
    click.echo(f"{question} [y/N]: ", nl=False, err=True)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        click.echo(err=True)
        raise
    if answer.strip().lower() not in ("y", "yes"):
        raise click.Abort


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


def verbose_option(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--verbose`, a flag."""
    return click.option(
        "--verbose", "-v", is_flag=True, help="Print the whole log, not only its warnings."
    )(command)


def log_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--log-file` and `--verbose`."""
    return click.option(
        "--log-file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Log to this file, of limited size, and only warnings to standard error.",
    )(verbose_option(command))


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
        command(settings=settings, display=Display(as_json), **options)

    return run


def require_creation(producer: Any, topic: str) -> None:
    """Raises CommandError if the topic that records are sent to is not created within seconds."""
    import time

    from barnabas.cli.operations.console_clients import is_missing

    deadline_s = time.monotonic() + CONNECT_TIMEOUT_S
    while is_missing(producer, topic):
        if time.monotonic() > deadline_s:
            producer.purge()
            raise CommandError(
                f"Topic {topic} does not exist, and the brokers do not create it; create it with"
                f" `barnabas topics create {topic}`."
            )
        producer.poll(_CREATION_POLL_S)


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
        from barnabas.config.unknown_names import find_similar

        similar = find_similar(topic, client.list_topics(timeout=CONNECT_TIMEOUT_S).topics)
        hint = f" did you mean {similar}? Or" if similar is not None else ""
        raise CommandError(
            f"Topic {topic} does not exist;{hint} create it with `barnabas topics create {topic}`."
        )
    if error is not None:
        raise KafkaException(error)
    partitions: Collection[int] = metadata.topics[topic].partitions
    return partitions
