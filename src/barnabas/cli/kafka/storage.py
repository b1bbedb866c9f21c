"""kafka-storage: format and inspect the log directories of a node."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.features import add_release_verbs
from barnabas.cli.kafka.options import SubcommandParser


@kafka_command
def main(arguments: Sequence[str]) -> int:
    args = _build_parser().parse(arguments)
    status: int = args.act(args)
    return status


def _build_parser() -> SubcommandParser:
    parser = SubcommandParser("kafka-storage", "The Kafka storage tool.")
    verbs = parser.add_subcommands()
    info = verbs.add_parser("info", help="Show the log directories of this node.")
    info.set_defaults(act=_info)
    format_ = verbs.add_parser("format", help="Format the log directories of this node.")
    format_.set_defaults(act=_format)
    for verb in info, format_:
        verb.add_argument(
            "--config", "-c", required=True, type=Path, help="The node's server.properties."
        )
    _add_format_options(format_)
    add_release_verbs(verbs, letters=True)
    uuid = verbs.add_parser("random-uuid", help="Print a random id.")
    uuid.set_defaults(act=_random_uuid)
    return parser


def _add_format_options(format_: SubcommandParser) -> None:
    format_.add_argument(
        "--cluster-id", "-t", required=True, help="The cluster id, the same for all nodes."
    )
    format_.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="Skip directories that are already formatted instead of failing.",
    )
    format_.add_argument("--release-version", "-r", help="The release whose feature levels to use.")
    format_.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="The level of a feature; can be repeated.",
    )
    format_.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="SCRAM-SHA-256=[name=NAME,password=PASSWORD]",
        help="A SCRAM user of the new cluster; can be repeated.",
    )
    quorum = format_.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="Start a quorum with this node as its only voter.",
    )
    quorum.add_argument(
        "--no-initial-controllers", "-N", action="store_true", help="Join an existing quorum."
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="ID@HOST:PORT:DIRECTORY-ID,...",
        help="Start a quorum with these voters; the same for all nodes.",
    )


def _info(args: Namespace) -> int:
    from barnabas.cli.operations.storage import format_inspection, inspect_node_storage

    inspected = inspect_node_storage(args.config)
    print(format_inspection(inspected))
    return 1 if inspected.problems else 0


def _format(args: Namespace) -> int:
    from barnabas.cli.operations.features import parse_levels
    from barnabas.cli.operations.storage import FormatOptions, format_node

    formatting = FormatOptions(
        cluster_id=args.cluster_id,
        ignore_formatted=args.ignore_formatted,
        release=args.release_version,
        features=parse_levels(args.feature),
        standalone=args.standalone,
        no_initial_controllers=args.no_initial_controllers,
        initial_controllers=args.initial_controllers,
        scram_users=args.add_scram,
    )
    for line in format_node(args.config, formatting):
        print(line)
    return 0


def _random_uuid(_args: Namespace) -> int:
    from barnabas.wire.uuid import random_uuid, to_text

    print(to_text(random_uuid()))
    return 0
