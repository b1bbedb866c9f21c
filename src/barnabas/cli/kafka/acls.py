"""kafka-acls: add, remove and list ACLs."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from
from barnabas.cli.kafka.output import exit_on_error

if TYPE_CHECKING:
    from barnabas.cli.operations.acls import AclOptions, AclResource, AclRule
    from barnabas.client.admin import AioAdminClient

ACTIONS: Final = ("list", "add", "remove")
PATTERN_TYPES: Final = ("any", "match", "literal", "prefixed")
_PRINCIPALS_AND_HOSTS: Final = ("allow-principal", "deny-principal", "allow-host", "deny-host")


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    _check(parser, args)
    with exit_on_error(lambda why: print(f"Error while executing ACL command: {why}")):
        options = _acl_options(args)
        act = {"list": _list, "add": _add, "remove": _remove}[
            parser.only_one_of(args, *ACTIONS) or "list"
        ]
        if not args.list:
            _check_rules(parser, args, options)
        connection_from(args).run(lambda admin: act(admin, args, options))
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser("kafka-acls", "This tool helps to manage acls on kafka.")
    parser.add_connection_options(controllers=True)
    parser.add_flag("--add", "Add ACLs.")
    parser.add_flag("--remove", "Remove ACLs.")
    parser.add_flag("--list", "List the ACLs of the given resources, or all ACLs.")
    for name, help_text in (
        ("--topic", "The topic; '*' means all topics."),
        ("--group", "The consumer group; '*' means all groups."),
        ("--transactional-id", "The transactional id; '*' means all of them."),
        ("--delegation-token", "The delegation token; '*' means all tokens."),
        ("--user-principal", "The user principal, as a resource of CreateTokens."),
        ("--allow-principal", "A principal to allow, as User:name; User:* means everybody."),
        ("--deny-principal", "A principal to deny; a denial outranks what is allowed."),
        ("--allow-host", "A host from which principals are allowed. (default: *)"),
        ("--deny-host", "A host from which principals are denied. (default: *)"),
        ("--principal", "A principal whose ACLs to list."),
    ):
        parser.add_value(name, name[2:], help_text, action="append", default=None)
    parser.add_flag("--cluster", "ACLs of the cluster.")
    parser.add_value(
        "--operation",
        "operation",
        "An operation, such as Read or DescribeConfigs. (default: All)",
        action="append",
        default=None,
    )
    parser.add_value(
        "--resource-pattern-type",
        "|".join(PATTERN_TYPES),
        "How resource names are compared. (default: LITERAL)",
        type=str.lower,
        choices=PATTERN_TYPES,
        default="literal",
    )
    parser.add_flag("--producer", "The operations of a producer on the topic.")
    parser.add_flag("--consumer", "The operations of a consumer on the topic and the group.")
    parser.add_flag("--idempotent", "With --producer: allow idempotent writes.")
    parser.add_flag("--force", "Do not ask before ACLs are removed.")
    return parser


def _check(parser: FlatParser, args: Namespace) -> None:
    if bool(args.bootstrap_server) == bool(args.bootstrap_controller):
        parser.usage_error(
            "Only one of --bootstrap-server or --bootstrap-controller must be specified"
            if args.bootstrap_server
            else "One of --bootstrap-server or --bootstrap-controller must be specified"
        )
    if parser.only_one_of(args, *ACTIONS) is None:
        parser.usage_error("Command must include exactly one action: --list, --add, --remove. ")
    parser.forbid_together(args, "list", "producer", "consumer", *_PRINCIPALS_AND_HOSTS)
    for role in "producer", "consumer":
        parser.forbid_together(args, role, "operation", "deny-principal", "deny-host")
    if args.principal and not args.list:
        parser.usage_error("The --principal option is only available if --list is set")
    if args.producer and not args.topic:
        parser.usage_error("With --producer you must specify a --topic")
    if args.idempotent and not args.producer:
        parser.usage_error("The --idempotent option is only available if --producer is set")
    is_alone = not args.producer and (args.cluster or args.transactional_id)
    if args.consumer and (not (args.topic and args.group) or is_alone):
        parser.usage_error(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _check_rules(parser: FlatParser, args: Namespace, options: "AclOptions") -> None:
    from barnabas.cli.operations.acls import find_invalid_operation

    if not options.resource_list():
        parser.usage_error(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    if args.add and args.resource_pattern_type in ("any", "match"):
        kind = args.resource_pattern_type.upper()
        parser.usage_error(
            f"A '--resource-pattern-type' value of '{kind}' is not valid when adding acls."
        )
    if args.add and not (args.allow_principal or args.deny_principal):
        parser.usage_error(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    if invalid := find_invalid_operation(options.rules()):
        parser.usage_error(invalid)


def _acl_options(args: Namespace) -> "AclOptions":
    from barnabas.cli.operations.acls import CLUSTER_NAME, AclOptions, operation_of
    from barnabas.client.admin.model import ResourcePatternType, ResourceType

    pattern_type = ResourcePatternType[args.resource_pattern_type.upper()]
    # A cluster has one name, so that only its literal pattern exists.
    has_cluster = args.cluster and pattern_type is ResourcePatternType.LITERAL
    return AclOptions(
        resources={
            ResourceType.TOPIC: _stripped(args.topic),
            ResourceType.CLUSTER: [CLUSTER_NAME] if has_cluster else [],
            ResourceType.GROUP: _stripped(args.group),
            ResourceType.TRANSACTIONAL_ID: _stripped(args.transactional_id),
            ResourceType.DELEGATION_TOKEN: _stripped(args.delegation_token),
            ResourceType.USER: _stripped(args.user_principal),
        },
        pattern_type=pattern_type,
        allowed_principals=args.allow_principal or (),
        denied_principals=args.deny_principal or (),
        allowed_hosts=_stripped(args.allow_host),
        denied_hosts=_stripped(args.deny_host),
        operations=[operation_of(name) for name in args.operation or ["All"]],
        roles=[role for role in ("producer", "consumer") if getattr(args, role)],
        idempotent=args.idempotent,
    )


def _stripped(names: Iterable[str] | None) -> list[str]:
    return [name.strip() for name in names or ()]


async def _list(admin: "AioAdminClient", args: Namespace, options: "AclOptions") -> None:
    from barnabas.cli.operations.acls import ANYTHING, list_acls, require_principal

    principals: list[str | None] = [require_principal(name) for name in args.principal or ()]
    rules = await list_acls(admin, options.resource_list() or [ANYTHING])
    for principal in principals or [None]:
        if principal is not None:
            print(f"ACLs for principal `{principal}`")
        for resource, of_resource in rules.items():
            shown = [rule for rule in of_resource if principal in (None, rule.principal)]
            if shown:
                print(f"Current ACLs for resource `{resource}`:")
                print("".join(f"\t{rule}\n" for rule in shown))


async def _add(admin: "AioAdminClient", _: Namespace, options: "AclOptions") -> None:
    from barnabas.cli.operations.acls import add_acls, list_acls

    for resource, rules in options.rules().items():
        present = (await list_acls(admin, [resource])).get(resource, [])
        for rule in rules:
            if rule in present:
                print(f"Acl (pattern={resource}, entry={rule}) already exists.")
        missing = [rule for rule in rules if rule not in present]
        if missing:
            print(f"Adding ACLs for resource `{resource}`: \n {_lines(missing)}")
            await add_acls(admin, resource, missing)


async def _remove(admin: "AioAdminClient", args: Namespace, options: "AclOptions") -> None:
    from barnabas.cli.operations.acls import remove_acls

    for resource, rules in options.rules().items():
        if args.force or _confirm(_question(resource, rules)):
            await remove_acls(admin, resource, rules)


def _question(resource: "AclResource", rules: Sequence["AclRule"]) -> str:
    if not rules:
        return f"Are you sure you want to delete all ACLs for resource filter `{resource}`? (y/n)"
    return (
        f"Are you sure you want to remove ACLs: \n {_lines(rules)} from resource filter "
        f"`{resource}`? (y/n)"
    )


def _lines(rules: Iterable["AclRule"]) -> str:
    return "".join(f"\t{rule}\n" for rule in rules)


def _confirm(question: str) -> bool:
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"
