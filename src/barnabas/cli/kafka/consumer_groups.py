"""kafka-consumer-groups: list and describe groups, move and delete their offsets, delete them."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import java_reason
from barnabas.cli.kafka.options import Flat, connect, is_given
from barnabas.cli.operations.errors import Refused

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.enums import ConsumerGroupState, ConsumerGroupType

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
"""The value of an option that may have one, and was given without."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    if chosen.validate_regex is not None:
        return _validate_regex(chosen.validate_regex)
    _check(options, chosen)
    try:
        connect(chosen).ask(lambda admin: _act(admin, chosen))
    except Refused as error:
        options.refuse(str(error))
    except Exception as error:
        # Kafka's command says so and ends as if all were well.
        why = java_reason(error)
        if why is None:
            raise
        print_error(f"Executing consumer group command failed due to {why}")
    return 0


def print_error(message: str) -> None:
    print(f"\nError: {message}")


def _options() -> Flat:
    options = Flat(
        "kafka-consumer-groups",
        "This tool helps to list all consumer groups, describe a consumer group, delete consumer "
        "group info, or reset consumer group offsets.",
    )
    options.connection()
    options.flag("--list", "List all consumer groups.")
    options.flag("--describe", "Describe groups, and how far they lag.")
    options.flag("--delete", "Delete groups that have no members.")
    options.flag("--delete-offsets", "Delete offsets that a group has committed.")
    options.flag("--reset-offsets", "Move the offsets of a group that has no members.")
    options.value("--group", "group", "The group; may be given many times.", action="append")
    options.flag("--all-groups", "All consumer groups.")
    options.value(
        "--topic",
        "topic[:0,1,2]",
        "The topic, or some of its partitions; may be given many times.",
        action="append",
    )
    options.flag("--all-topics", "All topics that the group has offsets of.")
    options.value("--timeout", "ms", "How long to wait. (default: 30000)", type=int, default=30_000)
    options.flag("--members", "Describe the members.")
    options.flag("--offsets", "Describe the partitions and their lags. (default)")
    options.add_argument(
        "--state",
        nargs="?",
        const=GIVEN_EMPTY,
        metavar="states",
        help="Describe the state; or list it, or list groups in these states alone.",
    )
    options.add_argument(
        "--type",
        nargs="?",
        const=GIVEN_EMPTY,
        metavar="types",
        help="List the types, or groups of these types alone.",
    )
    options.flag("--verbose", "Describe more.")
    options.flag("--dry-run", "Only show what a reset would do. (default)")
    options.flag("--execute", "Do it.")
    options.flag("--export", "Print the result as CSV.")
    options.value("--to-offset", "offset", "Reset to this offset.", type=int)
    options.value("--from-file", "file", "Reset to what a CSV file says.")
    options.value("--to-datetime", "YYYY-MM-DDThh:mm:ss.sss", "Reset to what came then.")
    options.value("--by-duration", "PnDTnHnMnS", "Reset to what came so long ago.")
    options.flag("--to-earliest", "Reset to the beginning.")
    options.flag("--to-latest", "Reset to the end.")
    options.flag("--to-current", "Reset to what is committed.")
    options.value("--shift-by", "count", "Reset to so many further on, or back.", type=int)
    options.value("--validate-regex", "regex", "Say whether it is a valid RE2 expression.")
    return options


def _check(options: Flat, chosen: Namespace) -> None:
    if options.one_of(chosen, *ACTIONS) is None:
        options.refuse(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets"
        )
    options.require(chosen, "bootstrap-server")
    _check_groups(options, chosen)
    if chosen.describe:
        details = ("members", "offsets", "state")
        if sum(is_given(chosen, each) for each in details) > 1:
            options.refuse(
                "Option [describe] takes at most one of these options: [members], [offsets], "
                "[state]"
            )
        if chosen.state:
            options.refuse("Option [describe] does not take a value for [state]")
    for detail in "members", "offsets", "verbose":
        if is_given(chosen, detail) and not chosen.describe:
            options.refuse(f"Option(s) [{detail}] are unavailable given other options")
    if chosen.delete and chosen.topic:
        options.refuse(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if chosen.reset_offsets:
        _check_reset(options, chosen)
    options.forbid(chosen, "group", "all-groups", "list")
    options.forbid(chosen, "topic", "list", "describe")


def _check_groups(options: Flat, chosen: Namespace) -> None:
    for action in "describe", "delete", "reset-offsets":
        if is_given(chosen, action) and not chosen.group and not chosen.all_groups:
            options.refuse(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if chosen.delete_offsets and not (chosen.group and chosen.topic):
        options.refuse("Option [delete-offsets] takes the following options: [group], [topic]")


def _check_reset(options: Flat, chosen: Namespace) -> None:
    if chosen.dry_run and chosen.execute:
        options.refuse("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not chosen.dry_run and not chosen.execute:
        print(
            "WARN: No action will be performed as the --execute option is missing. Say --dry-run "
            "to be understood by later versions as well.",
            file=sys.stderr,
        )
    for way in RESETS:
        options.forbid(chosen, way, *(each for each in RESETS if each != way))
    if not any(is_given(chosen, way) for way in RESETS):
        ways = ", ".join(f"[{way}]" for way in RESETS)
        options.refuse(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{ways}]"
        )
    if not (chosen.all_topics or chosen.topic or chosen.from_file):
        options.refuse("One of the reset scopes should be defined: --all-topics, --topic.")


async def _act(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.kafka import described_groups, reset_groups
    from barnabas.cli.operations.groups import group_ids

    if chosen.list:
        return await _list(admin, chosen)
    groups = await group_ids(admin) if chosen.all_groups else chosen.group
    if chosen.describe:
        await described_groups.describe(admin, groups, chosen)
    elif chosen.reset_offsets:
        await reset_groups.reset(admin, groups, chosen)
    elif chosen.delete:
        await _delete(admin, groups)
    else:
        await _delete_offsets(admin, chosen)
    return None


async def _list(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.operations.groups import STATE_NAMES, TYPE_NAMES, list_groups

    groups = await list_groups(admin, _states(chosen.state), _types(chosen.type))
    if chosen.state is None and chosen.type is None:
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
        cells += [kind.ljust(20)] if chosen.type is not None else []
        cells += [state.ljust(20)] if chosen.state is not None else []
        print(" ".join(cells))


def _states(text: str | None) -> "set[ConsumerGroupState]":
    from barnabas.cli.operations.groups import STATE_NAMES

    by_name = {name.lower(): state for state, name in STATE_NAMES.items()}
    names = [each.strip().lower().replace("_", "") for each in (text or "").split(",") if each]
    if any(name not in by_name for name in names):
        valid = ", ".join(STATE_NAMES.values())
        raise Refused(f"Invalid state list '{text}'. Valid states are: {valid}")
    return {by_name[name] for name in names}


def _types(text: str | None) -> "set[ConsumerGroupType]":
    from barnabas.cli.operations.groups import TYPE_NAMES

    by_name = {name.lower(): kind for kind, name in TYPE_NAMES.items()}
    names = [each.strip().lower() for each in (text or "").split(",") if each]
    if any(name not in by_name for name in names):
        valid = ", ".join(TYPE_NAMES.values())
        raise Refused(f"Invalid types list '{text}'. Valid types are: {valid}")
    return {by_name[name] for name in names}


async def _delete(admin: "AioAdminClient", groups: Sequence[str]) -> None:
    from barnabas.cli.kafka.errors import java_text
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


async def _delete_offsets(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.kafka.errors import java_message, java_text
    from barnabas.cli.operations.groups import delete_offsets
    from barnabas.client.errors import KafkaError

    (group,) = chosen.group[:1]
    deleted = await delete_offsets(admin, group, chosen.topic)
    if deleted.failure is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif deleted.failure in (
        KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    ):
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(java_message(deleted.failure))
    width = max([15, *(len(topic) for topic, _ in deleted.partitions)])
    print(f"\n{'TOPIC'.ljust(width)} {'PARTITION':<10} {'STATUS':<15}", end="")
    for (topic, partition), error in sorted(
        deleted.partitions.items(), key=lambda item: (item[0][0], item[0][1] or 0)
    ):
        status = "Successful" if error is None else f"Error: {java_text(error)}"
        shown = "-" if partition is None else partition
        print(f"\n{topic.ljust(width)} {shown:<10} {status:<15}", end="")
    print()


def _validate_regex(pattern: str) -> int:

    problem = problem_with(pattern)
    if problem is None:
        print(f"The regular expression `{pattern}` is valid.")
    else:
        print(f"The regular expression `{pattern}` is invalid: {problem}.")
    return 0


def problem_with(pattern: str) -> str | None:
    """What keeps a broker from using it; None if nothing does."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        (told,) = error.args
        text = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        return text.partition(": ")[0]
    return None
