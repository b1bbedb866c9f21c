"""`barnabas start FILE.properties`: run one node from a Kafka configuration file."""

from pathlib import Path

import click

from barnabas.cli.options import override_option, stop_with_stdin_option


@click.command("start")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@stop_with_stdin_option
@override_option
def command(file: Path, stop_with_stdin: bool, overrides: dict[str, str]) -> None:
    """Run a node from a server.properties FILE.

    Its log directories must be formatted: see `barnabas storage format`.
    """
    from barnabas.cli.foreground import run_node
    from barnabas.cli.operations.settings import load_settings

    run_node(load_settings(file, overrides), stop_with_stdin=stop_with_stdin)
