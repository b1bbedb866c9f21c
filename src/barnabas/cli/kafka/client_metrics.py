"""kafka-client-metrics: alter, describe, list and delete subscriptions of client metrics."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from, int32
from barnabas.cli.kafka.output import exit_on_error
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient

ACTIONS: Final = ("alter", "delete", "describe", "list")


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    _check(parser, args)
    act = {"alter": _alter, "delete": _delete, "describe": _describe, "list": _list}[
        parser.only_one_of(args, *ACTIONS) or "list"
    ]
    with exit_on_error(lambda why: print(f"Error while executing client metrics command : {why}")):
        connection_from(args).run(lambda admin: act(admin, args))
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-client-metrics",
        "This tool helps to manipulate and describe client metrics configurations.",
    )
    parser.add_connection_options()
    parser.add_flag("--alter", "Alter a subscription, or add one.")
    parser.add_flag("--delete", "Delete a subscription.")
    parser.add_flag("--describe", "Describe one subscription, or all.")
    parser.add_flag("--list", "List the subscriptions.")
    parser.add_value("--name", "name", "The name of the subscription.")
    parser.add_flag("--generate-name", "Use a random id as the name.")
    parser.add_value("--metrics", "m1,m2", "Prefixes of metric names.")
    parser.add_value("--interval", "ms", "How often clients push; empty: the default again.")
    parser.add_value("--match", "k1=v1,k2=v2", "Which clients push: selectors and expressions.")
    return parser


def _check(parser: FlatParser, args: Namespace) -> None:
    if parser.only_one_of(args, *ACTIONS) is None:
        parser.usage_error(
            "Command must include exactly one action: --alter, --delete, --describe or --list."
        )
    if not args.bootstrap_server:
        raise CommandError("--bootstrap-server must be specified.")
    for action in "delete", "describe", "list":
        parser.forbid_together(args, action, "generate-name", "metrics", "interval", "match")
    parser.forbid_together(args, "list", "name")
    parser.forbid_together(args, "generate-name", "name")
    if args.alter and not (args.name or args.generate_name):
        raise CommandError("One of --name or --generate-name must be specified with --alter.")
    if args.delete and not args.name:
        raise CommandError("A client metrics resource name must be specified with --delete.")
    if args.interval:
        try:
            int32(args.interval)
        except ValueError:
            raise CommandError(
                "Invalid interval value. Enter an integer, or leave empty to reset."
            ) from None


async def _alter(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.configs import EntityType, alter_configs
    from barnabas.wire.uuid import random_uuid, to_text

    name = args.name or to_text(random_uuid())
    given = {"metrics": args.metrics, "interval.ms": args.interval, "match": args.match}
    added = {key: value for key, value in given.items() if value}
    reset = [key for key, value in given.items() if value == ""]
    await alter_configs(admin, EntityType.CLIENT_METRICS, name, added, reset)
    print(f"Altered client metrics config for {name}.")


async def _delete(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.configs import EntityType, alter_configs, describe_configs

    kind = EntityType.CLIENT_METRICS
    present = [entry.name for entry in await describe_configs(admin, kind, args.name)]
    await alter_configs(admin, kind, args.name, {}, present)
    print(f"Deleted client metrics config for {args.name}.")


async def _describe(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.configs import EntityType, describe_configs, entity_names

    kind = EntityType.CLIENT_METRICS
    names = await entity_names(admin, kind)
    if args.name and args.name not in names:
        print(
            f"The client metric resource {args.name} doesn't exist and doesn't have dynamic config."
        )
        return
    for name in [args.name] if args.name else names:
        print(f"Client metrics configs for {name} are:")
        for entry in await describe_configs(admin, kind, name, everything=True):
            print(f"  {entry.name}={entry.value}")


async def _list(admin: "AioAdminClient", _: Namespace) -> None:
    from barnabas.cli.operations.configs import EntityType, entity_names

    for name in await entity_names(admin, EntityType.CLIENT_METRICS):
        print(name)
