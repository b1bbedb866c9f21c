"""`barnabas configs`: the configs of topics, brokers, groups and client metrics."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import CommandGroup, admin_command

KINDS = ("topics", "brokers", "broker-loggers", "groups", "client-metrics")
_kind = click.argument("kind", type=click.Choice(KINDS))


@click.group("configs", cls=CommandGroup)
def command() -> None:
    """Show and change settings of topics, brokers, groups and client metrics."""


@command.command("describe")
@_kind
@click.argument("name", required=False)
@click.option(
    "--all", "everything", is_flag=True, help="Include defaults and values from server.properties."
)
@click.option(
    "--default", "cluster_wide", is_flag=True, help="The cluster-wide defaults of brokers."
)
@admin_command
def describe(
    connection: Connection,
    display: Display,
    kind: str,
    name: str | None,
    everything: bool,
    cluster_wide: bool,
) -> None:
    """Show the settings of NAME, or of all entities of this KIND.

    \b
      barnabas configs describe topics orders --all
      barnabas configs describe brokers --default
    """
    from barnabas.cli.operations.configs import (
        EntityType,
        config_source,
        describe_configs,
        entity_names,
    )
    from barnabas.cli.operations.topics import require_topics
    from barnabas.client.admin import AioAdminClient

    async def collect(admin: AioAdminClient) -> list[tuple[object, ...]]:
        entity_type = EntityType(kind)
        if name and entity_type is EntityType.TOPICS:
            await require_topics(admin, [name])
        resources = (
            [""] if cluster_wide else [name] if name else await entity_names(admin, entity_type)
        )
        return [
            (
                resource or "(all)",
                entry.name,
                "(secret)" if entry.is_sensitive else entry.value,
                config_source(entry).name.lower().replace("_", " "),
            )
            for resource in resources
            for entry in await describe_configs(admin, entity_type, resource, everything=everything)
        ]

    display.print_table(["NAME", "SETTING", "VALUE", "SOURCE"], connection.run(collect))


@command.command("set")
@_kind
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@admin_command
def set_(
    connection: Connection, display: Display, kind: str, name: str, settings: tuple[str, ...]
) -> None:
    """Set settings of NAME. For brokers, `all` sets the cluster-wide default.

    \b
      barnabas configs set topics orders retention.ms=86400000
      barnabas configs set brokers all log.cleaner.threads=2
    """
    from barnabas.cli.operations.configs import EntityType, alter_configs
    from barnabas.cli.options import parse_pair_options

    changes = parse_pair_options(settings)
    entity_type, resource = EntityType(kind), _resource(kind, name)
    connection.run(lambda admin: alter_configs(admin, entity_type, resource, changes))
    display.print_result(f"{name}: {', '.join(changes)} set.", name=name, set=changes)


@command.command("unset")
@_kind
@click.argument("name")
@click.argument("keys", nargs=-1, required=True)
@admin_command
def unset(
    connection: Connection, display: Display, kind: str, name: str, keys: tuple[str, ...]
) -> None:
    """Remove settings of NAME, so that their defaults apply again.

    \b
      barnabas configs unset topics orders retention.ms
    """
    from barnabas.cli.operations.configs import EntityType, alter_configs

    entity_type, resource = EntityType(kind), _resource(kind, name)
    connection.run(lambda admin: alter_configs(admin, entity_type, resource, {}, keys))
    display.print_result(f"{name}: {', '.join(keys)} unset.", name=name, unset=keys)


def _resource(kind: str, name: str) -> str:
    return "" if kind == "brokers" and name == "all" else name
