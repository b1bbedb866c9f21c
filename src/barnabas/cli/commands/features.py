"""`barnabas features`: describe, upgrade and downgrade feature levels."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import raise_for_errors
from barnabas.cli.options import CommandGroup, admin_command, confirm, yes_option


@click.group("features", cls=CommandGroup)
def command() -> None:
    """Describe, upgrade and downgrade feature levels."""


@command.command("describe")
@admin_command
def describe(connection: Connection, display: Display) -> None:
    """Show the finalized level of each feature and the levels that brokers support.

    \b
      barnabas features describe
    """
    from barnabas.cli.operations.features import describe_features, format_level

    levels = connection.run(describe_features)
    rows = [
        (
            feature.name,
            format_level(feature.name, feature.level),
            format_level(feature.name, feature.min_level),
            format_level(feature.name, feature.max_level),
        )
        for feature in levels.features
    ]
    display.print_table(["FEATURE", "LEVEL", "MIN LEVEL", "MAX LEVEL"], rows)


@command.command("set")
@click.argument("levels", nargs=-1, required=True, metavar="NAME=LEVEL...")
@click.option("--down", is_flag=True, help="Allow a downgrade that loses no metadata.")
@click.option("--unsafe", is_flag=True, help="Allow a downgrade that may lose metadata.")
@click.option("--dry-run", is_flag=True, help="Validate only.")
@yes_option
@admin_command
def set_(
    connection: Connection,
    display: Display,
    levels: tuple[str, ...],
    down: bool,
    unsafe: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Change feature levels: all of them, or none on error. Asks before a downgrade.

    \b
      barnabas features set transaction.version=2
      barnabas features set transaction.version=1 --down --dry-run
    """
    from barnabas.cli.operations.features import parse_levels, update_features
    from barnabas.client.admin.cluster import UpgradeType

    kind = UpgradeType.SAFE_DOWNGRADE if down else UpgradeType.UPGRADE
    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else kind
    new_levels = parse_levels(levels)
    if (down or unsafe) and not dry_run:
        risk = ", which may lose metadata" if unsafe else ""
        confirm(f"Downgrade to {', '.join(levels)}{risk}?", yes=yes)
    outcomes = connection.run(
        lambda admin: update_features(admin, new_levels, kind, dry_run=dry_run)
    )
    raise_for_errors(outcomes)
    done = "can be" if dry_run else "are"
    display.print_result(f"{', '.join(levels)} {done} set.", levels=new_levels, dry_run=dry_run)
