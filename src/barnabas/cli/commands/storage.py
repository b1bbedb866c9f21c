"""`barnabas storage`: format and inspect log directories, as kafka-storage does."""

from pathlib import Path

import click

from barnabas.cli.options import CommandGroup

_config = click.option(
    "--config",
    "-c",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The node's server.properties.",
)


@click.group("storage", cls=CommandGroup)
def command() -> None:
    """Format and inspect the log directories of a node."""


@command.command("format")
@_config
@click.option("--cluster-id", "-t", required=True, help="The cluster id, the same for all nodes.")
@click.option(
    "--ignore-formatted",
    "-g",
    is_flag=True,
    help="Skip directories that are already formatted instead of failing.",
)
@click.option(
    "--release-version",
    "-r",
    help="The release whose feature levels to use.  [default: the latest]",
)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="The level of a feature; can be repeated.",
)
@click.option(
    "--standalone", "-s", is_flag=True, help="Start a quorum with this node as its only voter."
)
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY-ID,...",
    help="Start a quorum with these voters; the same for all nodes.",
)
@click.option("--no-initial-controllers", "-N", is_flag=True, help="Join an existing quorum.")
@click.option(
    "--add-scram",
    "-S",
    "scram_users",
    multiple=True,
    metavar="MECHANISM=[name=...,password=...]",
    help="A SCRAM user of the new cluster; can be repeated.",
)
def format_(
    file: Path,
    cluster_id: str,
    ignore_formatted: bool,
    release_version: str | None,
    features: tuple[str, ...],
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    scram_users: tuple[str, ...],
) -> None:
    """Prepare log directories for a node's first start.

    The first controller of a cluster uses --standalone, and a cluster id from
    `barnabas storage random-uuid`. Further controllers use --no-initial-controllers. To start
    with several controllers, use --initial-controllers on all of them. A node that is only a
    broker needs none of these.

    \b
      barnabas storage format -c server.properties -t CLUSTER-ID -s
      barnabas storage format -c server.properties -t CLUSTER-ID -s \\
          --add-scram 'SCRAM-SHA-256=[name=admin,password=secret]'
    """
    from barnabas.cli.operations.features import parse_levels
    from barnabas.cli.operations.storage import FormatOptions, format_node

    if standalone + no_initial_controllers + (initial_controllers is not None) > 1:
        raise click.UsageError(
            "choose one of --standalone, --initial-controllers and --no-initial-controllers"
        )
    formatting = FormatOptions(
        cluster_id=cluster_id,
        ignore_formatted=ignore_formatted,
        release=release_version,
        features=parse_levels(features),
        standalone=standalone,
        no_initial_controllers=no_initial_controllers,
        initial_controllers=initial_controllers,
        scram_users=scram_users,
    )
    for line in format_node(file, formatting):
        click.echo(line)


@command.command("info")
@_config
@click.pass_context
def info(context: click.Context, file: Path) -> None:
    """Show the log directories and their metadata.

    \b
      barnabas storage info -c server.properties
    """
    from barnabas.cli.operations.storage import format_inspection, inspect_node_storage

    inspected = inspect_node_storage(file)
    click.echo(format_inspection(inspected))
    if inspected.problems:
        context.exit(1)


@command.command("random-uuid")
def random_uuid_() -> None:
    """Print a new random id, for a cluster or a directory.

    \b
      barnabas storage random-uuid
    """
    from barnabas.wire.uuid import random_uuid, to_text

    click.echo(to_text(random_uuid()))
