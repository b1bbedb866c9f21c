"""`barnabas storage`: what kafka-storage does. Format directories, look at them, make ids."""

from pathlib import Path

import click

from barnabas.cli.settings import load_settings

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
def format_(
    file: Path,
    cluster_id: str,
    ignore_formatted: bool,
    release_version: str | None,
    features: tuple[str, ...],
    standalone: bool,
) -> None:
    """Prepare log directories for a node's first start.

    A node that is alone in its cluster begins with --standalone, and with an id from
    `barnabas storage random-uuid`.
    """
    from barnabas.cli.errors import one_line_errors
    from barnabas.node.format import format_storage

    settings = load_settings(file, {})
    with one_line_errors():
        formatted = format_storage(
            settings,
            cluster_id=cluster_id,
            standalone=standalone,
            release=release_version,
            features=_levels(features),
            ignore_formatted=ignore_formatted,
        )
    if not formatted.directories:
        click.echo("All of the log directories are already formatted.")
    for directory in formatted.directories:
        kind = "data"
        if directory == settings.metadata_log_dir:
            kind = "dynamic metadata voter" if standalone else "metadata"
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
