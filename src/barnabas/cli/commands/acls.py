"""`barnabas acls`: who may do what."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.display import Display, count_of
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import CommandGroup, admin_command, confirm, yes_option

if TYPE_CHECKING:
    from barnabas.cli.operations.acls import AclOptions, AclResource, AclRule, AclRules
    from barnabas.client.admin import AioAdminClient

_COLUMNS = ("PERMISSION", "PRINCIPAL", "OPERATION", "RESOURCE", "NAME", "PATTERN", "HOST")


@click.group("acls", cls=CommandGroup)
def command() -> None:
    """List, add and remove ACLs: who may do what on which resources."""


def resource_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that name resources; each can be repeated."""
    options = (
        click.option("--topic", "-t", multiple=True, help="A topic; * means all."),
        click.option("--group", "-g", multiple=True, help="A group; * means all."),
        click.option("--transactional-id", multiple=True, help="A transactional id."),
        click.option("--token", multiple=True, help="A delegation token."),
        click.option("--user", multiple=True, help="A user, as User:name, whose tokens these are."),
        click.option("--cluster", is_flag=True, help="The cluster."),
        click.option("--prefix", is_flag=True, help="The names are prefixes of names."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command("list")
@click.argument("principal", required=False)
@resource_options
@admin_command
def list_(connection: Connection, display: Display, principal: str | None, **names: Any) -> None:
    """List the ACLs of PRINCIPAL and of resources, or all ACLs.

    An ACL of a resource is listed if it affects it: also a prefix or a wildcard.

    \b
      barnabas acls list
      barnabas acls list alice --topic orders
    """
    from barnabas.cli.operations.acls import ANYTHING, list_acls
    from barnabas.client.admin.model import ResourcePatternType

    wanted = None if principal is None else _principal(principal)
    pattern = ResourcePatternType.PREFIXED if names["prefix"] else ResourcePatternType.MATCH
    resources = [each._replace(pattern_type=pattern) for each in _options(**names).resource_list()]
    rules = connection.run(lambda admin: list_acls(admin, resources or [ANYTHING]))
    shown = {
        resource: [rule for rule in of_resource if wanted in (None, rule.principal)]
        for resource, of_resource in rules.items()
    }
    display.print_table(_COLUMNS, list(_rows(shown)))


def rule_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that say what is allowed or denied."""
    options = (
        click.option("--operation", "-o", help="Operations, such as read,write.  [default: all]"),
        click.option("--producer", is_flag=True, help="What a producer to the topic needs."),
        click.option("--consumer", is_flag=True, help="What a consumer of topic and group needs."),
        click.option("--deny", is_flag=True, help="Deny instead of allowing."),
        click.option("--host", multiple=True, help="From this address only.  [default: any]"),
    )
    for option in reversed(options):
        function = option(function)
    return resource_options(function)


@command.command("add")
@click.argument("principal")
@rule_options
@admin_command
def add(connection: Connection, display: Display, principal: str, **options: Any) -> None:
    """Allow PRINCIPAL operations on resources, or deny them.

    A principal is User:alice, or alice for short; User:* is everybody.

    \b
      barnabas acls add alice --producer --topic orders
      barnabas acls add bob --consumer --topic orders --group billing
      barnabas acls add eve --deny --operation read --topic '*'
    """
    from barnabas.cli.operations.acls import add_acls

    rules = _rules(principal, **options)

    async def add_all(admin: "AioAdminClient") -> None:
        for resource, of_resource in rules.items():
            await add_acls(admin, resource, of_resource)

    connection.run(add_all)
    rows = list(_rows(rules))
    display.print_result(f"{count_of(len(rows), 'ACL')} added.", added=_as_objects(rows))


@command.command("remove")
@click.argument("principal")
@rule_options
@yes_option
@admin_command
def remove(
    connection: Connection, display: Display, principal: str, yes: bool, **options: Any
) -> None:
    """Remove ACLs of PRINCIPAL, named by the options that added them.

    \b
      barnabas acls remove alice --producer --topic orders
    """
    from barnabas.cli.operations.acls import remove_acls, split

    rules = _rules(principal, **options)
    confirm(f"Remove {count_of(len(list(_rows(rules))), 'ACL')} of {principal}?", yes=yes)

    async def remove_all(admin: "AioAdminClient") -> list[tuple["AclResource", "AclRule"]]:
        return [
            split(binding)
            for resource, of_resource in rules.items()
            for binding in await remove_acls(admin, resource, of_resource)
        ]

    removed = [_row(resource, rule) for resource, rule in connection.run(remove_all)]
    display.print_result(f"{count_of(len(removed), 'ACL')} removed.", removed=_as_objects(removed))


def _rules(principal: str, *, deny: bool, host: Sequence[str], **options: Any) -> "AclRules":
    """Returns the rules that the options name. Raises CommandError if they name none."""
    from barnabas.cli.operations.acls import find_invalid_operation

    side = "denied" if deny else "allowed"
    who: dict[str, Any] = {f"{side}_principals": [_principal(principal)], f"{side}_hosts": host}
    acls = _options(**options, **who)
    if "consumer" in acls.roles and not (options["topic"] and options["group"]):
        raise CommandError("a consumer needs --topic and --group")
    rules = acls.rules()
    if not rules:
        raise CommandError("name a resource, such as --topic orders or --cluster")
    if invalid := find_invalid_operation(rules):
        raise CommandError(invalid)
    return rules


def _options(
    *,
    topic: Sequence[str],
    group: Sequence[str],
    transactional_id: Sequence[str],
    token: Sequence[str],
    user: Sequence[str],
    cluster: bool,
    prefix: bool,
    operation: str | None = None,
    producer: bool = False,
    consumer: bool = False,
    **principals: Any,
) -> "AclOptions":
    from barnabas.cli.operations.acls import CLUSTER_NAME, AclOptions, operation_of
    from barnabas.client.admin.model import AclOperation, ResourcePatternType, ResourceType

    operations = [operation_of(name) for name in (operation or "all").split(",")]
    if AclOperation.UNKNOWN in operations:
        known = ", ".join(each.name.lower() for each in AclOperation if each.value > 1)
        raise CommandError(f"{operation} is not a list of operations; there are {known}")
    return AclOptions(
        resources={
            ResourceType.TOPIC: topic,
            ResourceType.GROUP: group,
            ResourceType.TRANSACTIONAL_ID: transactional_id,
            ResourceType.DELEGATION_TOKEN: token,
            ResourceType.USER: user,
            ResourceType.CLUSTER: [CLUSTER_NAME] if cluster else [],
        },
        pattern_type=ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL,
        operations=operations,
        roles=[role for role, chosen in (("producer", producer), ("consumer", consumer)) if chosen],
        **principals,
    )


def _principal(text: str) -> str:
    """Returns a principal; a name alone is that of a user."""
    return text if ":" in text else f"User:{text}"


def _rows(rules: "AclRules") -> Iterable[tuple[object, ...]]:
    return (_row(resource, rule) for resource, each in rules.items() for rule in each)


def _row(resource: "AclResource", rule: "AclRule") -> tuple[object, ...]:
    from barnabas.cli.operations.acls import type_name

    return (
        rule.permission.name.lower(),
        rule.principal,
        rule.operation.name.lower(),
        type_name(resource.type).lower(),
        resource.name,
        resource.pattern_type.name.lower(),
        rule.host,
    )


def _as_objects(rows: Iterable[Sequence[object]]) -> list[dict[str, object]]:
    return [dict(zip(map(str.lower, _COLUMNS), row, strict=True)) for row in rows]
