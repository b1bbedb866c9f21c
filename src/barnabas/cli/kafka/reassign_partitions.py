"""kafka-reassign-partitions: move partitions to other brokers and replicas to other directories."""

import json
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from, int64, is_given
from barnabas.cli.kafka.output import exit_on_error
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.cli.operations.reassignments import Assignment, LogDirMove, ReassignmentTarget
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.log_dirs import TopicPartitionReplica
    from barnabas.client.errors import KafkaError
    from barnabas.client.values import PartitionKey

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REQUIRED: dict[str, tuple[str, ...]] = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
PERMITTED: dict[str, tuple[str, ...]] = {
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": ("preserve-throttles",),
    "cancel": ("bootstrap-controller", "preserve-throttles", "timeout"),
    "list": ("bootstrap-controller",),
}
START_TIMEOUT_MS = 10_000


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    action = _check(parser, args)
    act = {
        "generate": _generate,
        "execute": _execute,
        "verify": _verify,
        "cancel": _cancel,
        "list": _list,
    }[action]
    with exit_on_error(lambda why: print(f"Error: {why}")):
        try:
            connection_from(args).run(lambda admin: act(admin, args))
        except PlainError as why:
            print(why)
            return 1
    return 0


class PlainError(Exception):
    """An error that is printed without "Error:" before it."""


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-reassign-partitions", "This tool helps to move topic partitions between replicas."
    )
    parser.add_connection_options(controllers=True)
    parser.add_flag("--generate", "Propose a reassignment.")
    parser.add_flag("--execute", "Start the reassignment in --reassignment-json-file.")
    parser.add_flag("--verify", "Verify whether it is completed, and remove its throttles.")
    parser.add_flag("--cancel", "Cancel it.")
    parser.add_flag("--list", "List all reassignments in progress.")
    parser.add_value(
        "--reassignment-json-file",
        "file",
        'The reassignment: {"version": 1, "partitions": [{"topic": ..., "partition": 1, '
        '"replicas": [1, 2], "log_dirs": ["any", "/path"]}]}.',
    )
    parser.add_value(
        "--topics-to-move-json-file",
        "file",
        'The topics to move: {"version": 1, "topics": [{"topic": ...}]}.',
    )
    parser.add_value("--broker-list", "0,1,2", "The brokers to move them to.")
    parser.add_flag("--disable-rack-aware", "Ignore racks in a proposal.")
    parser.add_value("--throttle", "bytes/s", "The throttle of moves between brokers.", type=int64)
    parser.add_value(
        "--replica-alter-log-dirs-throttle",
        "bytes/s",
        "The throttle of moves between log directories.",
        type=int64,
    )
    parser.add_value(
        "--timeout", "ms", f"How long to wait for a move to start. ({START_TIMEOUT_MS})", type=int64
    )
    parser.add_flag("--additional", "Start it in addition to others, or change a throttle.")
    parser.add_flag("--preserve-throttles", "Do not change throttles.")
    parser.add_flag(
        "--disallow-replication-factor-change", "Reject a change of the replication factor."
    )
    return parser


def _check(parser: FlatParser, args: Namespace) -> str:
    action = parser.only_one_of(args, *ACTIONS)
    if action is None:
        names = ", ".join(f"--{action}" for action in ACTIONS)
        parser.usage_error(f"Command must include exactly one action: {names}")
    if args.bootstrap_server and args.bootstrap_controller:
        parser.usage_error(
            "Please don't specify both --bootstrap-server and --bootstrap-controller"
        )
    if not args.bootstrap_server and not args.bootstrap_controller:
        parser.usage_error("Please specify either --bootstrap-server or --bootstrap-controller")
    parser.require_options(args, *REQUIRED[action])
    possible = {
        name for table in (REQUIRED, PERMITTED) for names in table.values() for name in names
    }
    for name in sorted(possible - {*REQUIRED[action], *PERMITTED[action]}):
        if is_given(args, name):
            parser.usage_error(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


async def _generate(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations import reassignments as operations

    try:
        brokers = [int(broker) for broker in args.broker_list.split(",")]
    except ValueError:
        raise CommandError(f"--broker-list expects numbers, not {args.broker_list}") from None
    if twice := sorted({broker for broker in brokers if brokers.count(broker) > 1}):
        raise CommandError(f"Broker list contains duplicate entries: {','.join(map(str, twice))}")
    topics = operations.read_topics(args.topics_to_move_json_file)
    current = await operations.current_assignment(admin, topics)
    proposed = await operations.propose_assignment(
        admin, topics, brokers, by_rack=not args.disable_rack_aware
    )
    directories = await operations.replica_log_dirs(admin, current)
    print(f"Current partition replica assignment\n{_json(current, directories)}\n")
    print(f"Proposed partition reassignment configuration\n{_json(proposed, {})}")


async def _execute(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations import reassignments as operations

    target = operations.read_target(args.reassignment_json_file)
    operations.validate_target(target)
    moves = await operations.list_reassignments(admin)
    if moves and not args.additional:
        raise PlainError(
            "Cannot execute because there is an existing partition assignment.  Use --additional "
            "to override this and create a new partition assignment in addition to the existing "
            "one. The --additional flag can also be used to change the throttle by resubmitting "
            "the current reassignment."
        )
    await operations.require_brokers(admin, target)
    current = await operations.current_replicas(admin, target.replicas)
    directories = await operations.replica_log_dirs(admin, current)
    print(f"Current partition replica assignment\n\n{_json(current, directories)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    await _throttle(admin, args, target, current)
    failures = await operations.start_reassignment(
        admin, target, keep_factor=args.disallow_replication_factor_change
    )
    if failures:
        raise PlainError(f"Error reassigning partition(s):\n{_failures(failures)}")
    print(
        f"Successfully started partition reassignment{_s(target.replicas)} for "
        f"{_names(target.replicas)}"
    )
    await _move_log_dirs(admin, target.directories, args)


async def _throttle(
    admin: "AioAdminClient", args: Namespace, target: "ReassignmentTarget", current: "Assignment"
) -> None:
    from barnabas.cli.operations.reassignments import list_reassignments
    from barnabas.cli.operations.throttles import throttle_log_dir_moves, throttle_replication

    rate, directory_rate = args.throttle, args.replica_alter_log_dirs_throttle
    if rate is None and directory_rate is None:
        return
    print(
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure "
        "the throttle is removed."
    )
    if rate is not None:
        await throttle_replication(
            admin, current, target.replicas, await list_reassignments(admin), rate
        )
        print(f"The inter-broker throttle limit was set to {rate} B/s")
    if directory_rate is not None:
        brokers = {replica.broker_id for replica in target.directories}
        await throttle_log_dir_moves(admin, brokers, directory_rate)
        print(f"The replica-alter-dir throttle limit was set to {directory_rate} B/s")


async def _verify(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations import reassignments as operations

    target = operations.read_target(args.reassignment_json_file)
    moves = await operations.list_reassignments(admin)
    print("Status of partition reassignment:")
    for (topic, index), state in (
        await operations.reassignment_states(admin, target, moves)
    ).items():
        if not state.is_done:
            print(f"Reassignment of partition {topic}-{index} is still in progress.")
        elif state.current == state.target:
            print(f"Reassignment of partition {topic}-{index} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {topic}-{index}, but replica set is "
                f"{_ids(state.current)} rather than {_ids(state.target)}."
            )
    log_dir_moves = await operations.log_dir_moves(admin, target.directories)
    print("\n".join(_move_line(*move) for move in sorted(log_dir_moves.items(), key=_by_broker)))
    is_moving = any(
        move.state in (operations.LogDirMoveState.ACTIVE, operations.LogDirMoveState.ELSEWHERE)
        for move in log_dir_moves.values()
    )
    if not moves and not is_moving and not args.preserve_throttles:
        await _clear_throttles(admin, target)


async def _cancel(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations import reassignments as operations

    target = operations.read_target(args.reassignment_json_file)
    moves = await operations.list_reassignments(admin)
    active = [partition for partition in sorted(target.replicas) if partition in moves]
    if active:
        failures = await operations.cancel_reassignments(admin, active)
        if failures:
            raise PlainError(
                f"Error cancelling partition reassignment{_s(failures)} for:\n{_failures(failures)}"
            )
        print(f"Successfully cancelled partition reassignment{_s(active)} for: {_names(active)}")
    else:
        print("None of the specified partition reassignments are active.")
    back = {
        replica: move.current
        for replica, move in (await operations.log_dir_moves(admin, target.directories)).items()
        if move.current
        and move.state in (operations.LogDirMoveState.ACTIVE, operations.LogDirMoveState.ELSEWHERE)
    }
    if back:
        await _move_log_dirs(admin, back, args)
    else:
        print("None of the specified partition moves are active.", end="")
    if not args.preserve_throttles:
        await _clear_throttles(admin, target)


async def _list(admin: "AioAdminClient", _args: Namespace) -> None:
    from barnabas.cli.operations.reassignments import list_reassignments

    moves = await list_reassignments(admin)
    if not moves:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for (topic, index), move in moves.items():
        adding = f" adding: {_ids(move.adding_replicas)}." if move.adding_replicas else ""
        removing = f" removing: {_ids(move.removing_replicas)}." if move.removing_replicas else ""
        print(f"{topic}-{index}: replicas: {_ids(move.replicas)}.{adding}{removing}")


async def _move_log_dirs(
    admin: "AioAdminClient", directories: "Mapping[TopicPartitionReplica, str]", args: Namespace
) -> None:
    from barnabas.cli.operations.reassignments import move_log_dirs

    if not directories:
        return
    timeout_ms = START_TIMEOUT_MS if args.timeout is None else args.timeout
    late = await move_log_dirs(admin, directories, timeout_ms)
    for replica, path in sorted(directories.items(), key=_by_broker):
        if replica not in late:
            print(
                f"Successfully started moving log directory to {path} for replica "
                f"{replica.topic}-{replica.partition} with broker {replica.broker_id} "
            )
    if late:
        names = ",".join(_replica(replica) for replica in late)
        raise PlainError(
            f"Timed out before log directory move{_s(late)} could be started for: {names}"
        )


async def _clear_throttles(admin: "AioAdminClient", target: "ReassignmentTarget") -> None:
    from barnabas.cli.operations.throttles import clear_broker_throttles, clear_topic_throttles

    live = {node.id for node in (await admin.describe_cluster()).nodes}
    brokers = sorted(live.union(*target.replicas.values()))
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_ids(brokers)}")
    await clear_broker_throttles(admin, brokers)
    topics = target.topics
    print(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    await clear_topic_throttles(admin, topics)


def _move_line(replica: "TopicPartitionReplica", move: "LogDirMove") -> str:
    from barnabas.cli.operations.reassignments import LogDirMoveState

    named = f"Partition {replica.topic}-{replica.partition}"
    match move.state:
        case LogDirMoveState.NO_DIRECTORY:
            return (
                f"{named} is not found in any live log dir on broker {replica.broker_id}. There is "
                "likely an offline log directory on the broker."
            )
        case LogDirMoveState.ACTIVE:
            return f"Reassignment of replica {_replica(replica)} is still in progress."
        case LogDirMoveState.ELSEWHERE:
            return (
                f"{named} on broker {replica.broker_id} is being moved to log dir {move.future} "
                f"instead of {move.target}."
            )
        case LogDirMoveState.CANCELLED:
            return (
                f"{named} on broker {replica.broker_id} is not being moved from log dir "
                f"{move.current} to {move.target}."
            )
        case LogDirMoveState.COMPLETED:
            return f"Reassignment of replica {_replica(replica)} completed successfully."


def _json(assignment: "Assignment", directories: "Mapping[TopicPartitionReplica, str]") -> str:
    from barnabas.client.admin.log_dirs import TopicPartitionReplica

    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": ids,
            "log_dirs": [
                directories.get(TopicPartitionReplica(topic, index, broker_id), "any")
                for broker_id in ids
            ],
        }
        for (topic, index), ids in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _failures(failures: "Mapping[PartitionKey, KafkaError]") -> str:
    from barnabas.cli.kafka.output import java_message

    return "\n".join(
        f"{topic}-{index}: {java_message(failures[topic, index])}"
        for topic, index in sorted(failures)
    )


def _names(partitions: "Iterable[PartitionKey]") -> str:
    return ",".join(f"{topic}-{index}" for topic, index in sorted(partitions))


def _replica(replica: "TopicPartitionReplica") -> str:
    return f"{replica.topic}-{replica.partition}-{replica.broker_id}"


def _by_broker(item: "tuple[TopicPartitionReplica, object]") -> tuple[int, str, int]:
    return item[0].broker_id, item[0].topic, item[0].partition


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _s(items: Sized) -> str:
    return "" if len(items) == 1 else "s"
