"""What every subcommand that asks a cluster has: where it is, and `--json` for programs.

`asks` gives a command its Connection and its Display; tables are for people, on a terminal with
colours, and `--json` prints the same rows as a list of objects.
"""

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from barnabas.cli.work.connection import Connection, read_properties

PATIENCE_S = 3.0
"""How long a person waits for somebody to answer."""


class Display:
    """How answers are shown."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        if self.as_json:
            keys = [each.lower().replace(" ", "_") for each in head]
            self.json([dict(zip(keys, row, strict=True)) for row in rows])
        elif sys.stdout.isatty():
            _draw(head, rows)
        else:
            _align(head, rows)

    def say(self, line: str, **fields: object) -> None:
        """One thing: a sentence, or its fields."""
        if self.as_json:
            self.json(fields)
        else:
            click.echo(line)

    def json(self, value: object) -> None:
        click.echo(json.dumps(value, default=str))


def bootstrap_server(command: Callable[..., None]) -> Callable[..., None]:
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


def command_config(command: Callable[..., None]) -> Callable[..., None]:
    """Tell a command the file that `command_config` names."""
    option = click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Settings of the client: security, timeouts.",
    )
    return option(command)


def asks(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a `connection` and a `display`."""

    @bootstrap_server
    @click.option(
        "--bootstrap-controller",
        "-C",
        "controllers",
        metavar="HOST:PORT,...",
        help="Controllers to ask instead, at their own listeners.",
    )
    @command_config
    @click.option("--json", "as_json", is_flag=True, help="For programs: print JSON.")
    @functools.wraps(command)
    def asking(
        servers: str,
        controllers: str | None,
        command_config: str | None,
        as_json: bool,
        **given: Any,
    ) -> None:
        connection = Connection(
            servers=None if controllers else servers,
            controllers=controllers,
            settings=read_properties(command_config) if command_config else {},
            patience_s=PATIENCE_S,
        )
        command(connection=connection, display=Display(as_json), **given)

    return asking


def pairs(given: Sequence[str]) -> Mapping[str, str]:
    """What options such as `--config key=value` say."""
    from barnabas.cli.work.refused import Refused
    from barnabas.cli.work.settings import parse_pairs

    try:
        return parse_pairs(tuple(given))
    except Refused as error:
        raise click.BadParameter(str(error)) from None


def _draw(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False)
    for column, name in enumerate(head):
        numbers = bool(rows) and all(isinstance(row[column], int) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*("-" if cell is None else str(cell) for cell in row))
    Console().print(table)


def _align(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [list(head), *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())
