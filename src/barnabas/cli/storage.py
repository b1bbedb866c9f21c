"""`barnabas storage`: what kafka-storage does. Format directories, look at them, make ids."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.settings import load_settings

if TYPE_CHECKING:
    from barnabas.raft import Voters

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
    from barnabas.cli.errors import one_line_errors
    from barnabas.node.format import Beginning, format_storage, parse_first_voters

    if standalone + no_initial_controllers + (initial_controllers is not None) > 1:
        raise click.UsageError(
            "choose one of --standalone, --initial-controllers and --no-initial-controllers"
        )
    settings = load_settings(file, {})
    quorum: Beginning | Voters = Beginning.SETTING
    if standalone:
        quorum = Beginning.ALONE
    elif no_initial_controllers:
        quorum = Beginning.JOINING
    with one_line_errors():
        if initial_controllers is not None:
            listener = settings["controller.listener.names"][0]
            quorum = parse_first_voters(initial_controllers, listener)
        formatted = format_storage(
            settings,
            cluster_id=cluster_id,
            quorum=quorum,
            release=release_version,
            features=_levels(features),
            ignore_formatted=ignore_formatted,
        )
    if not formatted.directories:
        click.echo("All of the log directories are already formatted.")
    for directory in formatted.directories:
        kind = "data"
        if directory == settings.metadata_log_dir:
            begins = standalone or initial_controllers is not None
            kind = "dynamic metadata voter" if begins else "metadata"
        click.echo(
            f"Formatting {kind} directory {directory} with metadata.version {formatted.release}."
        )


@command.command("info")
@_config
@click.pass_context
def info(context: click.Context, file: Path) -> None:
    """Show the log directories and what they belong to."""
    from barnabas.node.format import inspect_storage

    inspected = inspect_storage(load_settings(file, {}))
    if inspected.directories:
        click.echo(
            "Found log directory:" if len(inspected.directories) == 1 else "Found log directories:"
        )
        click.echo("".join(f"  {directory}\n" for directory in inspected.directories))
    if inspected.metadata:
        pairs = ", ".join(f"{key}={value}" for key, value in sorted(inspected.metadata.items()))
        click.echo(f"Found metadata: {{{pairs}}}\n")
    if inspected.problems:
        click.echo("Found problem:" if len(inspected.problems) == 1 else "Found problems:")
        click.echo("".join(f"  {problem}\n" for problem in inspected.problems))
        context.exit(1)


@command.command("random-uuid")
def random_uuid_() -> None:
    """Print a new random id, for a cluster or a directory."""
    from barnabas.wire.uuid import random_uuid, to_text

    click.echo(to_text(random_uuid()))


def _levels(features: tuple[str, ...]) -> dict[str, int]:
    levels = {}
    for feature in features:
        name, equals, level = feature.partition("=")
        if not equals or not level.isdigit():
            raise click.BadParameter(f"{feature!r} is not NAME=LEVEL", param_hint="--feature")
        levels[name] = int(level)
    return levels
