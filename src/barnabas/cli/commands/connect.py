"""`barnabas connect`: runs workers of Connect, and manages connectors by their REST API."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from barnabas.cli.commands.connect_new import new
from barnabas.cli.commands.connect_replay import replay_dlq
from barnabas.cli.commands.connect_try import try_
from barnabas.cli.display import Display, count_of
from barnabas.cli.operations.connect import (
    DEFAULT_URL,
    ConnectClient,
    connector_of,
    is_connector_file,
)
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import (
    CommandGroup,
    confirm,
    log_file_options,
    parse_pair_options,
    parse_regex,
    stop_with_stdin_option,
    yes_option,
)

_NAMES = click.argument("names", nargs=-1, required=True, metavar="NAME...")


def _worker_command(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--connect` and `--json`; passes a `client` and a `display`."""

    @click.option(
        "--connect",
        "url",
        metavar="URL",
        default=DEFAULT_URL,
        show_default=True,
        envvar="BARNABAS_CONNECT",
        help="The REST API of any worker of the group.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(command)
    def run(url: str, as_json: bool, **options: Any) -> None:
        command(client=ConnectClient(url), display=Display(as_json), **options)

    return run


@click.group("connect", cls=CommandGroup)
def command() -> None:
    """Run connectors, which read something into topics or write topics to something.

    `start` runs a worker until Ctrl-C. The other commands manage the connectors of a worker that
    runs already.

    \b
      barnabas connect start
      barnabas connect create in connector.class=FileStreamSource file=f topic=t
      barnabas connect list
    """


@command.command("start")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--bootstrap-server",
    "-b",
    "servers",
    metavar="HOST:PORT,...",
    envvar="BARNABAS_BOOTSTRAP_SERVER",
    help="Brokers to connect to.  [default: those of the file, or localhost:9092]",
)
@click.option("--host", help="The host name or address to listen on.  [default: that of the file]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port of the REST API; 0 for any free port.  [default: that of the file, or 8083]",
)
@stop_with_stdin_option
@log_file_options
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of the worker, instead of that of the file; can be repeated.",
)
def start(
    files: Sequence[Path],
    servers: str | None,
    host: str | None,
    port: int | None,
    stop_with_stdin: bool,
    log_file: Path | None,
    verbose: bool,
    overrides: tuple[str, ...],
) -> None:
    """Run a worker until Ctrl-C.

    FILES are a file of settings of the worker, by Kafka's names, and files of connectors to create
    or to change: properties or JSON. All of them may be left out. Workers with the same group.id
    and brokers share the connectors, and take over those of a worker that dies.

    \b
      barnabas connect start -b kafka1:9092
      barnabas connect start worker.properties source.json
      barnabas connect start --set exactly.once.source.support=enabled
    """
    import asyncio

    from barnabas.cli.connect_worker import parse_worker_config, run_worker
    from barnabas.cli.logs import configure_logging
    from barnabas.cli.operations.settings import read_properties

    workers = [file for file in files if not is_connector_file(file)]
    if len(workers) > 1:
        raise CommandError(
            f"{workers[1]} has no connector.class, and {workers[0]} is already the worker's file"
        )
    configure_logging(log_file, verbose=verbose)
    origin = str(workers[0]) if workers else None
    properties = {
        **(read_properties(workers[0]) if workers else {}),
        **({} if servers is None else {"bootstrap.servers": servers}),
        **parse_pair_options(overrides),
    }
    if not workers or host is not None or port is not None:
        properties["listeners"] = _listener(properties.get("listeners"), host, port)
    config = parse_worker_config(properties, origin)
    connectors = [file for file in files if file not in workers]
    log = "standard error" if log_file is None else str(log_file)
    asyncio.run(run_worker(config, connectors, log=log, stop_with_stdin=stop_with_stdin))


def _listener(given: str | None, host: str | None, port: int | None) -> str:
    """Without a file, only this machine can connect: everybody who can may do everything."""
    from urllib.parse import urlsplit

    parts = urlsplit(given or "http://localhost:8083")
    shown = host if host is not None else parts.hostname or ""
    shown = f"[{shown}]" if ":" in shown else shown
    return f"{parts.scheme}://{shown}:{parts.port if port is None else port}"


# Connectors


@command.command("list")
@click.argument("pattern", required=False)
@_worker_command
def list_(client: ConnectClient, display: Display, pattern: str | None) -> None:
    """List connectors, or those whose names fully match the regular expression PATTERN.

    STATE is that of the connector; FAILED counts its failed tasks.

    \b
      barnabas connect list 'orders-.*'
    """
    regex = parse_regex(pattern)
    expanded = client.get("connectors", query="expand=status&expand=info")
    rows = [
        _list_row(name, content)
        for name, content in sorted(expanded.items())
        if regex is None or regex.fullmatch(name)
    ]
    display.print_table(["NAME", "TYPE", "STATE", "TASKS", "FAILED", "WORKER"], rows)


def _list_row(name: str, content: Mapping[str, Any]) -> tuple[object, ...]:
    status, info = content.get("status"), content.get("info", {})
    if status is None:
        return name, info.get("type"), None, len(info.get("tasks", ())), 0, None
    tasks = status["tasks"]
    failed = sum(task["state"] == "FAILED" for task in tasks)
    connector = status["connector"]
    return name, status["type"], connector["state"], len(tasks), failed, connector["worker_id"]


@command.command("show")
@click.argument("name")
@_worker_command
def show(client: ConnectClient, display: Display, name: str) -> None:
    """Show the state, the errors and the settings of a connector.

    \b
      barnabas connect show orders
    """
    info = client.get("connectors", name)
    try:
        status = client.get("connectors", name, "status")
    except CommandError:  # it was just created
        status = {"connector": {"state": "UNASSIGNED", "worker_id": "-"}, "tasks": []}
    if display.as_json:
        display.print_json({**info, "status": status})
        return
    connector = status["connector"]
    click.echo(f"{name} ({info['type']}): {connector['state']} on {connector['worker_id']}")
    _echo_trace(connector)
    for task in status["tasks"]:
        click.echo(f"  task {task['id']}: {task['state']} on {task['worker_id']}")
        _echo_trace(task)
    click.echo("Settings:")
    for setting, value in sorted(info["config"].items()):
        click.echo(f"  {setting}={value}")


def _echo_trace(status: Mapping[str, Any]) -> None:
    for line in status.get("trace", "").rstrip().splitlines():
        click.echo(f"    {line}")


@command.command("create")
@click.argument("source", metavar="FILE|NAME")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--paused", is_flag=True, help="Create it paused.")
@click.option("--stopped", is_flag=True, help="Create it stopped, to set its offsets first.")
@click.option("--replace", is_flag=True, help="Replace the settings if it exists.")
@_worker_command
def create(
    client: ConnectClient,
    display: Display,
    source: str,
    settings: Sequence[str],
    paused: bool,
    stopped: bool,
    replace: bool,
) -> None:
    """Create a connector, from a file (properties or JSON) or from settings on the command line.

    \b
      barnabas connect create orders.json
      barnabas connect create in connector.class=FileStreamSource file=f topic=t
    """
    name, config, state = connector_of(source, parse_pair_options(settings))
    if paused or stopped:
        state = "STOPPED" if stopped else "PAUSED"
    exists = replace and name in client.get("connectors")
    if exists:
        info = client.send("PUT", "connectors", name, "config", body=config)
    else:
        body = {"name": name, "config": config, **({"initial_state": state} if state else {})}
        info = client.send("POST", "connectors", body=body)
    done = "settings replaced" if exists else "created"
    display.print_result(f"{name} ({info['type']}): {done}.", name=name, type=info["type"])


@command.command("validate")
@click.argument("source", metavar="FILE|NAME")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@_worker_command
def validate(client: ConnectClient, display: Display, source: str, settings: Sequence[str]) -> None:
    """Check the settings of a connector, and create nothing.

    The exit status is 1 if something is wrong.

    \b
      barnabas connect validate orders.json
    """
    name, config, _ = connector_of(source, parse_pair_options(settings))
    if "connector.class" not in config:
        raise CommandError(f"{name}: connector.class is missing")
    result = client.send(
        "PUT",
        "connector-plugins",
        config["connector.class"],
        "config",
        "validate",
        body=config,
    )
    errors = [
        (each["value"]["name"], error)
        for each in result["configs"]
        for error in each["value"]["errors"]
    ]
    if display.as_json:
        display.print_json([{"setting": setting, "error": error} for setting, error in errors])
    else:
        for setting, error in errors:
            click.echo(f"{setting}: {error}")
    if errors:
        raise CommandError(f"{name} has {count_of(len(errors), 'error')} in its settings")
    if not display.as_json:
        click.echo(f"{name}: the settings are valid.")


def _target_command(action: str, done: str, summary: str) -> None:
    @command.command(action, help=f"{summary}\n\n\b\n  barnabas connect {action} orders")
    @_NAMES
    @_worker_command
    def run(client: ConnectClient, display: Display, names: Sequence[str]) -> None:
        for name in names:
            client.send("PUT", "connectors", name, action)
            display.print_result(f"{name} {done}.", name=name, action=action)


_target_command(
    "pause", "is being paused", "Pause connectors: they stay assigned, and read and write nothing."
)
_target_command("resume", "is being resumed", "Resume connectors that are paused or stopped.")
_target_command(
    "stop", "is being stopped", "Stop connectors: their tasks end, and offsets can be changed."
)


@command.command("restart")
@_NAMES
@click.option("--tasks", is_flag=True, help="Restart the tasks too.")
@click.option("--only-failed", is_flag=True, help="Restart only what has failed.")
@_worker_command
def restart(
    client: ConnectClient,
    display: Display,
    names: Sequence[str],
    tasks: bool,
    only_failed: bool,
) -> None:
    """Restart connectors, such as those that have failed.

    \b
      barnabas connect restart orders --tasks --only-failed
    """
    query = f"includeTasks={str(tasks).lower()}&onlyFailed={str(only_failed).lower()}"
    for name in names:
        client.send("POST", "connectors", name, "restart", query=query)
        display.print_result(f"{name} is being restarted.", name=name)


@command.command("delete")
@_NAMES
@yes_option
@_worker_command
def delete(client: ConnectClient, display: Display, names: Sequence[str], yes: bool) -> None:
    """Delete connectors. Their topics and offsets stay.

    \b
      barnabas connect delete orders
    """
    confirm(f"Delete {', '.join(names)}?", yes=yes)
    for name in names:
        client.send("DELETE", "connectors", name)
        display.print_result(f"{name} deleted.", name=name)


@command.command("offsets")
@click.argument("name")
@click.option(
    "--set",
    "file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Set the offsets of this file, in the form that --json prints.",
)
@click.option("--reset", is_flag=True, help="Remove all offsets: it starts from the beginning.")
@yes_option
@_worker_command
def offsets(
    client: ConnectClient,
    display: Display,
    name: str,
    file: Path | None,
    reset: bool,
    yes: bool,
) -> None:
    """Show the offsets of a connector, or change them while it is stopped.

    \b
      barnabas connect offsets orders
      barnabas connect stop orders
      barnabas connect offsets orders --reset
    """
    if reset and file is not None:
        raise CommandError("Give either --set or --reset.")
    if reset:
        confirm(f"Remove the offsets of {name}?", yes=yes)
        result = client.send("DELETE", "connectors", name, "offsets")
        display.print_result(f"{name}: {result['message']}", name=name, message=result["message"])
        return
    if file is not None:
        body = _offsets_of(file)
        confirm(f"Change {count_of(len(body['offsets']), 'offset')} of {name}?", yes=yes)
        result = client.send("PATCH", "connectors", name, "offsets", body=body)
        display.print_result(f"{name}: {result['message']}", name=name, message=result["message"])
        return
    stored = client.get("connectors", name, "offsets")
    if display.as_json:
        display.print_json(stored)
        return
    rows = [(_pairs(each["partition"]), _pairs(each["offset"])) for each in stored["offsets"]]
    display.print_table(["PARTITION", "OFFSET"], rows)


def _pairs(fields: Mapping[str, Any] | None) -> str:
    return " ".join(f"{name}={value}" for name, value in (fields or {}).items())


def _offsets_of(file: Path) -> Any:
    import json

    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{file} is not JSON: {error}") from None
    if not isinstance(body, dict) or not isinstance(body.get("offsets"), list):
        raise CommandError(f'{file} must have the form {{"offsets": [...]}}')
    return body


@command.command("plugins")
@click.argument("pattern", required=False)
@click.option("--all", "is_all", is_flag=True, help="Converters, transforms and predicates too.")
@_worker_command
def plugins(client: ConnectClient, display: Display, pattern: str | None, is_all: bool) -> None:
    """List the connectors that are installed, or classes that match the regular expression.

    \b
      barnabas connect plugins --all
    """
    regex = parse_regex(pattern)
    found = client.get("connector-plugins", query=f"connectorsOnly={str(not is_all).lower()}")
    rows = [
        (each["class"], each["type"], each.get("version"))
        for each in found
        if regex is None or regex.fullmatch(each["class"])
    ]
    display.print_table(["CLASS", "TYPE", "VERSION"], rows)


command.add_command(new)
command.add_command(try_)
command.add_command(replay_dlq)
