"""kafka-topics: make, list, describe, enlarge and remove topics."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import reasons
from barnabas.cli.kafka.options import Flat, connect, is_given
from barnabas.cli.operations.errors import Refused

if TYPE_CHECKING:
    from barnabas.cli.operations.topics import Partition, Topic
    from barnabas.client.admin import AioAdminClient

ACTIONS = ("list", "describe", "create", "alter", "delete")
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    _check(options, chosen)
    act = {
        "list": _list,
        "describe": _describe,
        "create": _create,
        "alter": _alter,
        "delete": _delete,
    }[options.one_of(chosen, *ACTIONS) or "list"]
    with reasons(lambda why: print(f"Error while executing topic command : {why}")):
        connect(chosen).ask(lambda admin: act(admin, chosen))
    return 0


def _options() -> Flat:
    options = Flat(
        "kafka-topics", "This tool helps to create, delete, describe, or change a topic."
    )
    options.connection()
    options.flag("--list", "List all available topics.")
    options.flag("--create", "Create a new topic.")
    options.flag("--delete", "Delete a topic.")
    options.flag("--alter", "Alter the number of partitions and replica assignment.")
    options.flag("--describe", "List details for the given topics.")
    options.value("--topic", "topic", "The topic, or, except for --create, a regular expression.")
    options.value("--topic-id", "id", "The id of the topic to describe.")
    options.value(
        "--config",
        "name=value",
        "A setting of the topic being created; may be given many times.",
        action="append",
        default=None,
    )
    options.value(
        "--delete-config", "name", "No longer of any effect: see kafka-configs.", action="append"
    )
    options.value("--partitions", "count", "How many partitions the topic is to have.", type=int)
    options.value("--replication-factor", "count", "How many copies of each.", type=int)
    options.value(
        "--replica-assignment", "id:id,id:id,...", "The brokers of each partition, by hand."
    )
    options.flag("--under-replicated-partitions", "Describe those alone that lack copies.")
    options.flag("--unavailable-partitions", "Describe those alone whose leader is away.")
    options.flag("--under-min-isr-partitions", "Describe those alone below min.insync.replicas.")
    options.flag("--at-min-isr-partitions", "Describe those alone that are at min.insync.replicas.")
    options.flag("--topics-with-overrides", "Describe those alone with settings of their own.")
    options.flag("--if-exists", "Do nothing if there is no such topic.")
    options.flag("--if-not-exists", "Do not fail if there is such a topic.")
    options.flag("--exclude-internal", "Leave out internal topics.")
    options.value(
        "--partition-size-limit-per-response",
        "count",
        "How many partitions an answer may describe.",
        type=int,
    )
    return options


def _check(options: Flat, chosen: Namespace) -> None:
    action = options.one_of(chosen, *ACTIONS)
    if action is None:
        options.refuse(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    if not chosen.bootstrap_server:
        options.refuse("--bootstrap-server must be specified")
    if action == "describe" and chosen.if_exists and not (chosen.topic or chosen.topic_id):
        options.refuse("--topic or --topic-id is required to describe a topic")
    if action in ("create", "alter", "delete"):
        options.require(chosen, "topic")
    if action == "alter":
        if chosen.config:
            options.refuse(
                'Option combination "[bootstrap-server],[config]" can\'t be used with option '
                '"[alter]" (the kafka-configs CLI supports altering topic configs with a '
                "--bootstrap-server option)"
            )
        options.require(chosen, "partitions")
    for used, allowed in _ALLOWED.items():
        options.forbid(chosen, used, *(each for each in ACTIONS if each not in allowed))
    options.forbid(chosen, "replica-assignment", "replication-factor")
    if action == "create":
        options.forbid(chosen, "replica-assignment", "partitions")
    options.forbid(chosen, "topics-with-overrides", *REPORTS)


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
"""The actions that an option goes with."""


async def _list(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.operations.topics import topic_names

    names = await topic_names(admin, chosen.topic, internal=not chosen.exclude_internal)
    print("\n".join(names))


async def _create(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.operations.topics import Wanted, create_topic, parse_assignment
    from barnabas.client.errors import KafkaError, KafkaException

    wanted = Wanted(
        name=chosen.topic,
        partitions=chosen.partitions,
        replication_factor=chosen.replication_factor,
        assignment=parse_assignment(chosen.replica_assignment) if chosen.replica_assignment else (),
        configs=_configs(chosen.config or ()),
    )
    if "." in chosen.topic or "_" in chosen.topic:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
            "('_') could collide. To avoid issues it is best to use either, but not both."
        )
    try:
        await create_topic(admin, wanted)
    except KafkaException as error:
        if chosen.if_not_exists and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        raise
    print(f"Created topic {chosen.topic}.")


async def _alter(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.operations.topics import add_partitions, parse_assignment

    assignment = parse_assignment(chosen.replica_assignment) if chosen.replica_assignment else ()
    if names := await _existing(admin, chosen):
        await add_partitions(admin, names, chosen.partitions, assignment)


async def _delete(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.operations.topics import delete_topics

    await delete_topics(admin, await _existing(admin, chosen))


async def _describe(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.operations.topics import describe_topics

    if chosen.topic_id:
        names = await _existing_id(admin, chosen)
    else:
        names = await _existing(admin, chosen)
    reports = [each for each in REPORTS if is_given(chosen, each)]
    for topic in await describe_topics(admin, names):
        if not reports and (topic.overrides or not chosen.topics_with_overrides):
            _print_topic(topic)
        if chosen.topics_with_overrides:
            continue
        for partition in topic.partitions:
            if not reports or any(_is_reported(partition, each) for each in reports):
                _print_partition(partition)


async def _existing(admin: "AioAdminClient", chosen: Namespace) -> list[str]:
    from barnabas.cli.operations.topics import topic_names

    names = await topic_names(admin, chosen.topic, internal=not chosen.exclude_internal)
    if chosen.topic and not names and not chosen.if_exists:
        raise Refused(f"Topic '{chosen.topic}' does not exist as expected")
    return names


async def _existing_id(admin: "AioAdminClient", chosen: Namespace) -> list[str]:
    from barnabas.cli.operations.topics import name_of

    name = await name_of(admin, chosen.topic_id)
    if name is None and not chosen.if_exists:
        raise Refused(f"TopicId '{chosen.topic_id}' does not exist as expected")
    return [name] if name is not None else []


def _configs(pairs: Sequence[str]) -> dict[str, str]:
    configs = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not value.strip() or "=" in value:
            raise Refused(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                'format "key=val".'
            )
        configs[name.strip()] = value.strip()
    return configs


def _is_reported(partition: "Partition", report: str) -> bool:
    return {
        "under-replicated-partitions": partition.is_under_replicated,
        "under-min-isr-partitions": partition.is_below_minimum,
        "at-min-isr-partitions": partition.is_at_minimum,
        "unavailable-partitions": partition.is_leaderless,
    }[report]


def _print_topic(topic: "Topic") -> None:
    configs = ",".join(f"{name}={value}" for name, value in topic.overrides.items())
    print(
        f"Topic: {topic.name}\tTopicId: {topic.topic_id}\t"
        f"PartitionCount: {len(topic.partitions)}\t"
        f"ReplicationFactor: {topic.partitions[0].replication_factor}\tConfigs: {configs}"
    )


def _print_partition(partition: "Partition") -> None:
    state, move = partition.state, partition.move
    cells = [
        f"\tTopic: {partition.topic}",
        f"Partition: {state.id}",
        f"Leader: {'none' if state.leader is None else state.leader.id}",
        f"Replicas: {_ids(each.id for each in state.replicas)}",
        f"Isr: {_ids(each.id for each in state.isr)}",
    ]
    if move is not None:
        cells.append(f"Adding Replicas: {_ids(move.adding_replicas)}")
        cells.append(f"Removing Replicas: {_ids(move.removing_replicas)}")
    for name, nodes in ("Elr", state.elr), ("LastKnownElr", state.last_known_elr):
        cells.append(f"{name}: {'N/A' if nodes is None else _ids(each.id for each in nodes)}")
    print("\t".join(cells))


def _ids(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))
