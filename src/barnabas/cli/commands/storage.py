"""`barnabas storage`: what kafka-storage does. Format directories, look at them, make ids."""

from pathlib import Path

import click

_config = click.option(
    "--config",
    "-c",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The node's server.properties.",
)


@click.group("storage")
def command() -> None:
    """Format and inspect the log directories of a node."""


@command.command("format")
@_config
@click.option("--cluster-id", "-t", required=True, help="The id all nodes of the cluster share.")
@click.option(
    "--ignore-formatted",
    "-g",
    is_flag=True,
    help="Leave directories alone that are formatted already, instead of failing.",
)
@click.option(
    "--release-version",
    "-r",
    help="The release whose feature levels to begin with.  [default: the newest]",
)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="The level of one feature; may be given many times.",
)
@click.option(
    "--standalone", "-s", is_flag=True, help="Begin a quorum with this node as its only voter."
)
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY-ID,...",
    help="Begin a quorum with these voters; the same for all nodes.",
)
@click.option(
    "--no-initial-controllers", "-N", is_flag=True, help="Join a quorum that others begin."
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
) -> None:
    """Prepare log directories for a node's first start.

    A node that is alone in its cluster begins with --standalone, and with an id from
    `barnabas storage random-uuid`. Further controllers then join with --no-initial-controllers,
    or several begin together with --initial-controllers. A node that is a broker only needs none
    of them.
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
    )
    for line in format_node(file, formatting):
        click.echo(line)


@command.command("info")
@_config
@click.pass_context
def info(context: click.Context, file: Path) -> None:
    """Show the log directories and what they belong to."""
    from barnabas.cli.operations.storage import format_inspection, inspect_node_storage

    inspected = inspect_node_storage(file)
    click.echo(format_inspection(inspected))
    if inspected.problems:
        context.exit(1)


@command.command("random-uuid")
def random_uuid_() -> None:
    """Print a new random id, for a cluster or a directory."""
    from barnabas.wire.uuid import random_uuid, to_text

    click.echo(to_text(random_uuid()))
