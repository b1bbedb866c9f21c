"""`barnabas quotas`: the limits of users, client ids and IP addresses."""

from collections.abc import Callable

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import CommandGroup, admin_command

DEFAULT = "default"
"""The name of the entity whose quotas apply to all without their own."""


@click.group("quotas", cls=CommandGroup)
def command() -> None:
    """List, set and remove quotas of users, client ids and IP addresses.

    A broker delays a client that exceeds its quota:

    \b
      producer_byte_rate          bytes per second to a broker
      consumer_byte_rate          bytes per second from a broker
      request_percentage          time of requests, 100 is one thread
      controller_mutation_rate    partitions created or deleted per second
      connection_creation_rate    new connections per second, of an ip
    """


def entity_options(function: Callable[..., None]) -> Callable[..., None]:
    options = (
        click.option("--user", "-u", help="A user; `default` is all without their own quotas."),
        click.option("--client-id", "-c", help="A client id, alone or of the user."),
        click.option("--ip", help="An IP address."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command("list")
@admin_command
def list_(connection: Connection, display: Display) -> None:
    """List all quotas.

    \b
      barnabas quotas list
    """
    from barnabas.client.admin.quotas import ClientQuotaFilter

    described = connection.run(lambda admin: admin.describe_client_quotas(ClientQuotaFilter.all()))
    rows = [
        (*(_shown(entity.entries, kind) for kind in ("user", "client-id", "ip")), key, value)
        for entity, quotas in described.items()
        for key, value in quotas.items()
    ]
    rows.sort(key=lambda row: [str(cell or "") for cell in row])
    display.print_table(["USER", "CLIENT ID", "IP", "QUOTA", "VALUE"], rows)


@command.command("set")
@click.argument("quotas", nargs=-1, required=True, metavar="QUOTA=VALUE...")
@entity_options
@admin_command
def set_(
    connection: Connection,
    display: Display,
    quotas: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
) -> None:
    """Set quotas of a user, a client id, both, or an IP address.

    \b
      barnabas quotas set --user alice producer_byte_rate=1048576
      barnabas quotas set --user default request_percentage=50
    """
    from barnabas.cli.operations.configs import alter_quotas
    from barnabas.cli.options import parse_pair_options

    changes = parse_pair_options(quotas)
    entities = _entities(user, client_id, ip)
    connection.run(lambda admin: alter_quotas(admin, entities, changes, ()))
    display.print_result(f"{', '.join(changes)} set.", set=changes)


@command.command("unset")
@click.argument("keys", nargs=-1, required=True, metavar="QUOTA...")
@entity_options
@admin_command
def unset(
    connection: Connection,
    display: Display,
    keys: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
) -> None:
    """Remove quotas, so that those of a default apply again.

    \b
      barnabas quotas unset --user alice producer_byte_rate
    """
    from barnabas.cli.operations.configs import alter_quotas

    entities = _entities(user, client_id, ip)
    connection.run(lambda admin: alter_quotas(admin, entities, {}, keys))
    display.print_result(f"{', '.join(keys)} unset.", unset=keys)


def _entities(
    user: str | None, client_id: str | None, ip: str | None
) -> list[tuple[str, str | None]]:
    named = {"users": user, "clients": client_id, "ips": ip}
    entities: list[tuple[str, str | None]] = [
        (kind, "" if name == DEFAULT else name) for kind, name in named.items() if name is not None
    ]
    if not entities:
        raise CommandError("name a --user, a --client-id or an --ip")
    return entities


def _shown(entity: dict[str, str | None], kind: str) -> str | None:
    return (entity[kind] or DEFAULT) if kind in entity else None
