"""`barnabas connect try`: the first rows of a connector, without writing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.display import Display, count_of
from barnabas.cli.operations.connect import connector_of
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import POSITIVE_INT32, parse_pair_options

if TYPE_CHECKING:
    from barnabas.connect.execution.preview import Preview

_MAX_CHARACTERS = 120
"""Of a cell in a table."""


@click.command("try")
@click.argument("source", metavar="FILE|NAME")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--records",
    "count",
    type=POSITIVE_INT32,
    default=10,
    show_default=True,
    help="How many records to read.",
)
@click.option(
    "--worker",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The settings of the worker, such as its converters.",
)
@click.option(
    "--bootstrap-server",
    "-b",
    "servers",
    metavar="HOST:PORT,...",
    envvar="BARNABAS_BOOTSTRAP_SERVER",
    help="Brokers to connect to.  [default: those of the worker's file, or localhost:9092]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def try_(
    source: str,
    settings: Sequence[str],
    count: int,
    worker: Path | None,
    servers: str | None,
    as_json: bool,
) -> None:
    """Check the settings of a connector, and show its first rows without writing them.

    The connector runs in this process: it needs no worker and no Spark. A source reads its target
    from the start, a sink the first records of its topics. Rows that fail are shown with the
    stage and the error. The exit status is 1 if settings are wrong or rows fail.

    \b
      barnabas connect try orders.json
      barnabas connect try lines connector.class=FileStreamSource file=in topic=a
    """
    from barnabas.cli.connect_try_run import try_connector

    name, config, _ = connector_of(source, parse_pair_options(settings))
    display = Display(as_json)
    found = try_connector(name, config, worker, servers, count)
    if found.setting_errors:
        _print_setting_errors(display, found.setting_errors)
        errors = count_of(len(found.setting_errors), "error")
        raise CommandError(f"{name} has {errors} in its settings")
    assert found.preview is not None
    _print_preview(display, found.preview)
    if found.preview.errors:
        raise CommandError(f"{count_of(len(found.preview.errors), 'record')} failed")


def _print_setting_errors(display: Display, errors: Sequence[tuple[str, str]]) -> None:
    if display.as_json:
        settings = [{"setting": setting, "error": error} for setting, error in errors]
        display.print_json({"setting_errors": settings})
        return
    for setting, error in errors:
        click.echo(f"{setting}: {error}")


def _print_preview(display: Display, preview: "Preview") -> None:
    if display.as_json:
        display.print_json(
            {
                "records": [asdict(row) for row in preview.rows],
                "errors": [asdict(error) for error in preview.errors],
                "notes": preview.notes,
            }
        )
        return
    rows = [
        (row.topic, row.partition, row.offset, _cell(row.key), _cell(row.value))
        for row in preview.rows
    ]
    display.print_table(["TOPIC", "PARTITION", "OFFSET", "KEY", "VALUE"], rows)
    if not rows:
        click.echo("There are no records.")
    for note in preview.notes:
        click.echo(f"Note: {note}.")
    if preview.errors:
        click.echo("\nRecords that fail:")
        failed = [
            (error.topic, error.partition, error.offset, error.stage, error.message)
            for error in preview.errors
        ]
        display.print_table(["TOPIC", "PARTITION", "OFFSET", "STAGE", "ERROR"], failed)


def _cell(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, default=_text)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 3]}..."


def _text(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return value.hex() if isinstance(value, bytes) else str(value)
