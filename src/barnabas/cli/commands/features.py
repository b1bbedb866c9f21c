"""`barnabas features`: the feature levels of the cluster, and changing them."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import Refused
from barnabas.cli.options import asks


@click.group("features")
def command() -> None:
    """Look at feature levels, raise and lower them."""


@command.command("describe")
@asks
def describe(connection: Connection, display: Display) -> None:
    """Show the levels that the cluster is at, and those that brokers know."""
    from barnabas.cli.operations.features import describe_features, shown_level

    told = connection.ask(describe_features)
    rows = [
        (
            each.name,
            shown_level(each.name, each.level),
            shown_level(each.name, each.least),
            shown_level(each.name, each.most),
        )
        for each in told.features
    ]
    display.table(["FEATURE", "LEVEL", "LEAST", "MOST"], rows)


@command.command("set")
@click.argument("levels", nargs=-1, required=True, metavar="NAME=LEVEL...")
@click.option("--down", is_flag=True, help="Lower them, where nothing is lost.")
@click.option("--unsafe", is_flag=True, help="Lower them even if metadata is lost.")
@click.option("--dry-run", is_flag=True, help="Only see whether it could be.")
@asks
def set_(
    connection: Connection,
    display: Display,
    levels: tuple[str, ...],
    down: bool,
    unsafe: bool,
    dry_run: bool,
) -> None:
    """Change the levels of features, all of them or none."""
    from barnabas.cli.operations.features import parse_levels, update_features
    from barnabas.client.admin.features import UpgradeType

    kind = UpgradeType.SAFE_DOWNGRADE if down else UpgradeType.UPGRADE
    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else kind
    wanted = parse_levels(levels)
    outcomes = connection.ask(lambda admin: update_features(admin, wanted, kind, dry_run=dry_run))
    if failed := {name: why.str() for name, why in outcomes.items() if why is not None}:
        raise Refused("; ".join(f"{name}: {why}" for name, why in failed.items()))
    done = "could be" if dry_run else "are"
    display.say(f"{', '.join(levels)} {done} set.", levels=wanted, dry_run=dry_run)
