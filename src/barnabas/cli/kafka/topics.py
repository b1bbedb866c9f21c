"""kafka-topics: create, list, describe, alter and delete topics."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from, int32, is_given
from barnabas.cli.kafka.output import exit_on_error
from barnabas.cli.operations.errors import CommandError, parse_list_regex

if TYPE_CHECKING:
    from barnabas.cli.operations.topics import PartitionDetails, TopicDetails
    from barnabas.client.admin import AioAdminClient

ACTIONS = ("list", "describe", "create", "alter", "delete")
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    _check(parser, args)
    act = {
        "list": _list,
        "describe": _describe,
        "create": _create,
        "alter": _alter,
        "delete": _delete,
    }[parser.only_one_of(args, *ACTIONS) or "list"]
    with exit_on_error(lambda why: print(f"Error while executing topic command : {why}")):
        connection_from(args).run(lambda admin: act(admin, args))
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-topics", "This tool helps to create, delete, describe, or change a topic."
    )
    parser.add_connection_options()
    parser.add_flag("--list", "List all available topics.")
    parser.add_flag("--create", "Create a new topic.")
    parser.add_flag("--delete", "Delete a topic.")
    parser.add_flag("--alter", "Alter the number of partitions and replica assignment.")
    parser.add_flag("--describe", "List details for the given topics.")
    parser.add_value(
        "--topic", "topic", "The topic, or, except for --create, a regular expression."
    )
    parser.add_value("--topic-id", "id", "The id of the topic to describe.")
    parser.add_value(
        "--config",
        "name=value",
        "A config of the topic to create; can be repeated.",
        action="append",
        default=None,
    )
    parser.add_value(
        "--delete-config", "name", "No longer supported: see kafka-configs.", action="append"
    )
    parser.add_value("--partitions", "count", "The number of partitions.", type=int32)
    parser.add_value("--replication-factor", "count", "The replication factor.", type=int32)
    parser.add_value("--replica-assignment", "id:id,id:id,...", "The replicas of each partition.")
    parser.add_flag("--under-replicated-partitions", "Describe only under-replicated partitions.")
    parser.add_flag("--unavailable-partitions", "Describe only partitions without a leader.")
    parser.add_flag(
        "--under-min-isr-partitions", "Describe only partitions under min.insync.replicas."
    )
    parser.add_flag("--at-min-isr-partitions", "Describe only partitions at min.insync.replicas.")
    parser.add_flag("--topics-with-overrides", "Describe only topics with overridden configs.")
    parser.add_flag("--if-exists", "Do nothing if the topic does not exist.")
    parser.add_flag("--if-not-exists", "Do not fail if the topic exists.")
    parser.add_flag("--exclude-internal", "Exclude internal topics.")
    parser.add_value(
        "--partition-size-limit-per-response",
        "count",
        "The maximum number of partitions in a response.",
        type=int32,
    )
    return parser


def _check(parser: FlatParser, args: Namespace) -> None:
    action = parser.only_one_of(args, *ACTIONS)
    if action is None:
        parser.usage_error(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    if not args.bootstrap_server:
        parser.usage_error("--bootstrap-server must be specified")
    if action == "describe" and args.if_exists and not (args.topic or args.topic_id):
        parser.usage_error("--topic or --topic-id is required to describe a topic")
    if action in ("create", "alter", "delete"):
        parser.require_options(args, "topic")
    if action == "alter":
        if args.config:
            parser.usage_error(
                'Option combination "[bootstrap-server],[config]" can\'t be used with option '
                '"[alter]" (the kafka-configs CLI supports altering topic configs with a '
                "--bootstrap-server option)"
            )
        parser.require_options(args, "partitions")
    for used, allowed in _ALLOWED.items():
        parser.forbid_together(args, used, *(action for action in ACTIONS if action not in allowed))
    parser.forbid_together(args, "replica-assignment", "replication-factor")
    if action == "create":
        parser.forbid_together(args, "replica-assignment", "partitions")
    parser.forbid_together(args, "topics-with-overrides", *REPORTS)


_ALLOWED = {
    "config": ("create", "alter"),
    "partitions": ("create", "alter"),
    "replication-factor": ("create",),
    "replica-assignment": ("create", "alter"),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
    "topics-with-overrides": ("describe",),
    **dict.fromkeys(REPORTS, ("describe",)),
}
"""The actions that an option can be used with."""


async def _list(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.topics import topic_names

    pattern = parse_list_regex(args.topic)
    names = await topic_names(admin, pattern, internal=not args.exclude_internal)
    print("\n".join(names))


async def _create(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.topics import TopicSpec, create_topic, parse_assignment
    from barnabas.client.errors import KafkaError, KafkaException

    spec = TopicSpec(
        name=args.topic,
        partitions=args.partitions,
        replication_factor=args.replication_factor,
        assignment=parse_assignment(args.replica_assignment) if args.replica_assignment else (),
        configs=_configs(args.config or ()),
    )
    if "." in args.topic or "_" in args.topic:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
            "('_') could collide. To avoid issues it is best to use either, but not both."
        )
    try:
        await create_topic(admin, spec)
    except KafkaException as error:
        if args.if_not_exists and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        raise
    print(f"Created topic {args.topic}.")


async def _alter(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.topics import add_partitions, parse_assignment

    assignment = parse_assignment(args.replica_assignment) if args.replica_assignment else ()
    if names := await _existing(admin, args):
        await add_partitions(admin, names, args.partitions, assignment)


async def _delete(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.topics import delete_topics

    await delete_topics(admin, await _existing(admin, args))


async def _describe(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.topics import describe_topics

    if args.topic_id:
        names = await _existing_id(admin, args)
    else:
        names = await _existing(admin, args)
    reports = [report for report in REPORTS if is_given(args, report)]
    for topic in await describe_topics(admin, names):
        if not reports and (topic.overrides or not args.topics_with_overrides):
            _print_topic(topic)
        if args.topics_with_overrides:
            continue
        for partition in topic.partitions:
            if not reports or any(_is_reported(partition, report) for report in reports):
                _print_partition(partition)


async def _existing(admin: "AioAdminClient", args: Namespace) -> list[str]:
    from barnabas.cli.operations.topics import topic_names

    pattern = parse_list_regex(args.topic)
    names = await topic_names(admin, pattern, internal=not args.exclude_internal)
    if args.topic and not names and not args.if_exists:
        raise CommandError(f"Topic '{args.topic}' does not exist as expected")
    return names


async def _existing_id(admin: "AioAdminClient", args: Namespace) -> list[str]:
    from barnabas.cli.operations.topics import find_topic_name

    name = await find_topic_name(admin, args.topic_id)
    if name is None and not args.if_exists:
        raise CommandError(f"TopicId '{args.topic_id}' does not exist as expected")
    return [name] if name is not None else []


def _configs(pairs: Sequence[str]) -> dict[str, str]:
    configs = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not value.strip() or "=" in value:
            raise CommandError(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                'format "key=val".'
            )
        configs[name.strip()] = value.strip()
    return configs


def _is_reported(partition: "PartitionDetails", report: str) -> bool:
    return {
        "under-replicated-partitions": partition.is_under_replicated,
        "under-min-isr-partitions": partition.is_under_min_isr,
        "at-min-isr-partitions": partition.is_at_min_isr,
        "unavailable-partitions": partition.is_offline,
    }[report]


def _print_topic(topic: "TopicDetails") -> None:
    configs = ",".join(f"{name}={value}" for name, value in topic.overrides.items())
    print(
        f"Topic: {topic.name}\tTopicId: {topic.topic_id}\t"
        f"PartitionCount: {len(topic.partitions)}\t"
        f"ReplicationFactor: {topic.partitions[0].replication_factor}\tConfigs: {configs}"
    )


def _print_partition(partition: "PartitionDetails") -> None:
    state, move = partition.state, partition.reassignment
    cells = [
        f"\tTopic: {partition.topic}",
        f"Partition: {state.id}",
        f"Leader: {'none' if state.leader is None else state.leader.id}",
        f"Replicas: {_ids(replica.id for replica in state.replicas)}",
        f"Isr: {_ids(replica.id for replica in state.isr)}",
    ]
    if move is not None:
        cells.append(f"Adding Replicas: {_ids(move.adding_replicas)}")
        cells.append(f"Removing Replicas: {_ids(move.removing_replicas)}")
    for name, nodes in ("Elr", state.elr), ("LastKnownElr", state.last_known_elr):
        cells.append(f"{name}: {'N/A' if nodes is None else _ids(node.id for node in nodes)}")
    print("\t".join(cells))


def _ids(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))
