"""kafka-leader-election: elect preferred replicas, or unclean ones, as leaders."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from, int32, is_given
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient

SCOPES = ("topic", "all-topic-partitions", "path-to-json-file")


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    _check(args)
    return connection_from(args).run(lambda admin: _elect(admin, args))


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-leader-election",
        "This tool attempts to elect a new leader for a set of topic partitions. The type of "
        "elections supported are preferred replicas and unclean replicas.",
    )
    parser.add_connection_options()
    parser.add_value(
        "--admin.config", "file", "The same as --command-config.", dest="command_config"
    )
    parser.add_value(
        "--election-type",
        "PREFERRED|UNCLEAN",
        "PREFERRED, or UNCLEAN, which may lose records.",
        type=str.upper,
        choices=("PREFERRED", "UNCLEAN"),
    )
    parser.add_value("--topic", "topic", "The topic of the partition.")
    parser.add_value("--partition", "id", "The partition.", type=int32)
    parser.add_flag("--all-topic-partitions", "All partitions that need an election.")
    parser.add_value(
        "--path-to-json-file",
        "file",
        'The partitions: {"partitions": [{"topic": ..., "partition": 1}]}.',
    )
    return parser


def _check(args: Namespace) -> None:
    missing = [name for name in ("bootstrap-server", "election-type") if not is_given(args, name)]
    if missing:
        raise CommandError(f"Missing required option(s): {', '.join(missing)}")
    scopes = [name for name in SCOPES if is_given(args, name)]
    if len(scopes) != 1:
        raise CommandError(
            f"One and only one of the following options is required: {', '.join(SCOPES)}"
        )
    if (args.topic is None) != (args.partition is None):
        raise CommandError("Missing required option(s): --topic and --partition go together")


async def _elect(admin: "AioAdminClient", args: Namespace) -> int:
    from barnabas.cli.kafka.output import java_text
    from barnabas.cli.operations.partitions import elect_leaders, read_partitions
    from barnabas.client.admin.model import ElectionType

    partitions = None
    if args.topic is not None:
        partitions = [(args.topic, args.partition)]
    elif args.path_to_json_file is not None:
        listed = read_partitions(args.path_to_json_file, "Replica election data")
        partitions = [(entry["topic"], entry["partition"]) for entry in listed]
    outcome = await elect_leaders(admin, ElectionType[args.election_type], partitions)
    if outcome.elected:
        print(
            f"Successfully completed leader election ({args.election_type}) for partitions "
            f"{_text(outcome.elected)}"
        )
    if outcome.not_needed:
        print(f"Valid replica already elected for partitions {_text(outcome.not_needed)}")
    for (topic, index), error in outcome.errors.items():
        print(
            f"Error completing leader election ({args.election_type}) for partition: "
            f"{topic}-{index}: {java_text(error)}"
        )
    if outcome.errors:
        print(f"{len(outcome.errors)} replica(s) could not be elected", file=sys.stderr)
    return 1 if outcome.errors else 0


def _text(partitions: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in partitions)
