"""kafka-consumer-groups: list, describe and delete groups, reset and delete their offsets."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from, int64, is_given
from barnabas.cli.kafka.output import describe_java_error
from barnabas.cli.operations.errors import CommandError, UnreadableFileError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.model import ConsumerGroupState, ConsumerGroupType

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
RESETS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
GIVEN_EMPTY = ""
"""The value of an option with an optional value, given without one."""


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    if args.validate_regex is not None:
        return _validate_regex(args.validate_regex)
    _check(parser, args)
    try:
        connection_from(args).run(lambda admin: _act(admin, args))
    except UnreadableFileError as error:
        print_error(f"Executing consumer group command failed due to {error}")
    except CommandError as error:
        parser.usage_error(str(error))
    except Exception as error:
        # Kafka's command prints the error and exits with 0.
        why = describe_java_error(error)
        if why is None:
            raise
        print_error(f"Executing consumer group command failed due to {why}")
    return 0


def print_error(message: str) -> None:
    print(f"\nError: {message}")


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-consumer-groups",
        "This tool helps to list all consumer groups, describe a consumer group, delete consumer "
        "group info, or reset consumer group offsets.",
    )
    parser.add_connection_options()
    parser.add_flag("--list", "List all consumer groups.")
    parser.add_flag("--describe", "Describe groups and their lag.")
    parser.add_flag("--delete", "Delete groups without members.")
    parser.add_flag("--delete-offsets", "Delete offsets that a group has committed.")
    parser.add_flag("--reset-offsets", "Reset the offsets of a group without members.")
    parser.add_value("--group", "group", "The group; can be repeated.", action="append")
    parser.add_flag("--all-groups", "All consumer groups.")
    parser.add_value(
        "--topic",
        "topic[:0,1,2]",
        "The topic, or some of its partitions; can be repeated.",
        action="append",
    )
    parser.add_flag("--all-topics", "All topics that the group has offsets of.")
    parser.add_value(
        "--timeout", "ms", "How long to wait. (default: 30000)", type=int64, default=30_000
    )
    parser.add_flag("--members", "Describe the members.")
    parser.add_flag("--offsets", "Describe the partitions and their lags. (default)")
    parser.add_argument(
        "--state",
        nargs="?",
        const=GIVEN_EMPTY,
        metavar="states",
        help="Describe or list the state, or list groups in these states.",
    )
    parser.add_argument(
        "--type",
        nargs="?",
        const=GIVEN_EMPTY,
        metavar="types",
        help="List the types, or groups of these types.",
    )
    parser.add_flag("--verbose", "Describe in more detail.")
    parser.add_flag("--dry-run", "Only show what a reset would do. (default)")
    parser.add_flag("--execute", "Apply the reset.")
    parser.add_flag("--export", "Print the result as CSV.")
    parser.add_value("--to-offset", "offset", "Reset to this offset.", type=int64)
    parser.add_value("--from-file", "file", "Reset to the offsets of a CSV file.")
    parser.add_value(
        "--to-datetime",
        "YYYY-MM-DDThh:mm:ss.sss",
        "Reset to the first offset at or after this time.",
    )
    parser.add_value("--by-duration", "PnDTnHnMnS", "Reset to the offset this long ago.")
    parser.add_flag("--to-earliest", "Reset to the beginning.")
    parser.add_flag("--to-latest", "Reset to the end.")
    parser.add_flag("--to-current", "Reset to the committed offset.")
    parser.add_value(
        "--shift-by",
        "count",
        "Shift the committed offset by this number, which can be negative.",
        type=int64,
    )
    parser.add_value("--validate-regex", "regex", "Check whether it is a valid RE2 expression.")
    return parser


def _check(parser: FlatParser, args: Namespace) -> None:
    if parser.only_one_of(args, *ACTIONS) is None:
        parser.usage_error(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets"
        )
    parser.require_options(args, "bootstrap-server")
    _check_groups(parser, args)
    if args.describe:
        details = ("members", "offsets", "state")
        if sum(is_given(args, detail) for detail in details) > 1:
            parser.usage_error(
                "Option [describe] takes at most one of these options: [members], [offsets], "
                "[state]"
            )
        if args.state:
            parser.usage_error("Option [describe] does not take a value for [state]")
    for detail in "members", "offsets", "verbose":
        if is_given(args, detail) and not args.describe:
            parser.usage_error(f"Option(s) [{detail}] are unavailable given other options")
    if args.delete and args.topic:
        parser.usage_error(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if args.reset_offsets:
        _check_reset(parser, args)
    parser.forbid_together(args, "group", "all-groups", "list")
    parser.forbid_together(args, "topic", "list", "describe")


def _check_groups(parser: FlatParser, args: Namespace) -> None:
    for action in "describe", "delete", "reset-offsets":
        if is_given(args, action) and not args.group and not args.all_groups:
            parser.usage_error(
                f"Option [{action}] takes one of these options: [group], [all-groups]"
            )
    if args.delete_offsets and not (args.group and args.topic):
        parser.usage_error("Option [delete-offsets] takes the following options: [group], [topic]")


def _check_reset(parser: FlatParser, args: Namespace) -> None:
    if args.dry_run and args.execute:
        parser.usage_error("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not args.dry_run and not args.execute:
        print(
            "WARN: No action will be performed as the --execute option is missing. Use --dry-run "
            "for compatibility with later versions.",
            file=sys.stderr,
        )
    for scenario in RESETS:
        parser.forbid_together(args, scenario, *(other for other in RESETS if other != scenario))
    if not any(is_given(args, scenario) for scenario in RESETS):
        scenarios = ", ".join(f"[{scenario}]" for scenario in RESETS)
        parser.usage_error(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]"
        )
    if not (args.all_topics or args.topic or args.from_file):
        parser.usage_error("One of the reset scopes should be defined: --all-topics, --topic.")


async def _act(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.kafka import group_descriptions, group_offset_resets
    from barnabas.cli.operations.groups import list_group_ids

    if args.list:
        return await _list(admin, args)
    groups = await list_group_ids(admin) if args.all_groups else args.group
    if args.describe:
        await group_descriptions.describe(admin, groups, args)
    elif args.reset_offsets:
        await group_offset_resets.reset(admin, groups, args)
    elif args.delete:
        await _delete(admin, groups)
    else:
        await _delete_offsets(admin, args)
    return None


async def _list(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.operations.groups import STATE_NAMES, TYPE_NAMES, list_groups

    groups = await list_groups(admin, _states(args.state), _types(args.type))
    if args.state is None and args.type is None:
        for group in groups:
            print(group.group_id)
        return
    width = max([15, *(len(group.group_id) for group in groups)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    for group in groups:
        kind = TYPE_NAMES.get(group.type, "Unknown") if group.type else "Unknown"
        state = STATE_NAMES.get(group.state, "Unknown") if group.state else "Unknown"
        rows.append((group.group_id, kind, state))
    for group_id, kind, state in rows:
        cells = [group_id.ljust(width)]
        cells += [kind.ljust(20)] if args.type is not None else []
        cells += [state.ljust(20)] if args.state is not None else []
        print(" ".join(cells))


def _states(text: str | None) -> "set[ConsumerGroupState]":
    from barnabas.cli.operations.groups import STATE_NAMES

    by_name = {name.lower(): state for state, name in STATE_NAMES.items()}
    names = [state.strip().lower().replace("_", "") for state in (text or "").split(",") if state]
    if any(name not in by_name for name in names):
        valid = ", ".join(STATE_NAMES.values())
        raise CommandError(f"Invalid state list '{text}'. Valid states are: {valid}")
    return {by_name[name] for name in names}


def _types(text: str | None) -> "set[ConsumerGroupType]":
    from barnabas.cli.operations.groups import TYPE_NAMES

    by_name = {name.lower(): kind for kind, name in TYPE_NAMES.items()}
    names = [group_type.strip().lower() for group_type in (text or "").split(",") if group_type]
    if any(name not in by_name for name in names):
        valid = ", ".join(TYPE_NAMES.values())
        raise CommandError(f"Invalid types list '{text}'. Valid types are: {valid}")
    return {by_name[name] for name in names}


async def _delete(admin: "AioAdminClient", groups: Sequence[str]) -> None:
    from barnabas.cli.kafka.output import java_text
    from barnabas.cli.operations.groups import delete_groups

    outcomes = await delete_groups(admin, groups)
    deleted = [group for group, error in outcomes.items() if error is None]
    if len(deleted) == len(outcomes):
        print(f"Deletion of requested consumer groups ('{', '.join(deleted)}') was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for group, error in outcomes.items():
        if error is not None:
            print(f"* Group '{group}' could not be deleted due to: {java_text(error)}")
    if deleted:
        names = ", ".join(f"'{group}'" for group in deleted)
        print(f"\nThese consumer groups were deleted successfully: {names}")


async def _delete_offsets(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.kafka.output import java_message, java_text
    from barnabas.cli.operations.groups import delete_offsets
    from barnabas.client.errors import KafkaError

    (group,) = args.group[:1]
    deleted = await delete_offsets(admin, group, args.topic)
    if deleted.error is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif deleted.error in (
        KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    ):
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(java_message(deleted.error))
    width = max([15, *(len(topic) for topic, _ in deleted.partitions)])
    print(f"\n{'TOPIC'.ljust(width)} {'PARTITION':<10} {'STATUS':<15}", end="")
    for (topic, partition), error in sorted(
        deleted.partitions.items(), key=lambda item: (item[0][0], item[0][1] or 0)
    ):
        status = "Successful" if error is None else f"Error: {java_text(error)}"
        cell = "-" if partition is None else partition
        print(f"\n{topic.ljust(width)} {cell:<10} {status:<15}", end="")
    print()


def _validate_regex(pattern: str) -> int:

    problem = find_regex_problem(pattern)
    if problem is None:
        print(f"The regular expression `{pattern}` is valid.")
    else:
        print(f"The regular expression `{pattern}` is invalid: {problem}.")
    return 0


def find_regex_problem(pattern: str) -> str | None:
    """Returns why RE2, which brokers use, rejects the pattern; None if it does not."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        (message,) = error.args
        text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        return text.partition(": ")[0]
    return None
