"""kafka-storage: format the log directories of a node, look at them, make ids."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.features import add_release_verbs
from barnabas.cli.kafka.options import Verbs


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _options().parse(arguments)
    with reasons_to_stderr():
        status: int = chosen.act(chosen)
    return status


def _options() -> Verbs:
    options = Verbs("kafka-storage", "The Kafka storage tool.")
    verbs = options.verbs()
    info = verbs.add_parser("info", help="Show the log directories of this node.")
    info.set_defaults(act=_info)
    format_ = verbs.add_parser("format", help="Format the log directories of this node.")
    format_.set_defaults(act=_format)
    for verb in info, format_:
        verb.add_argument(
            "--config", "-c", required=True, type=Path, help="The node's server.properties."
        )
    _format_options(format_)
    add_release_verbs(verbs, letters=True)
    uuid = verbs.add_parser("random-uuid", help="Print a random id.")
    uuid.set_defaults(act=_random_uuid)
    return options


def _format_options(format_: Verbs) -> None:
    format_.add_argument(
        "--cluster-id", "-t", required=True, help="The id all nodes of the cluster share."
    )
    format_.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="Leave directories alone that are formatted already, instead of failing.",
    )
    format_.add_argument(
        "--release-version", "-r", help="The release whose feature levels to begin with."
    )
    format_.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="The level of one feature; may be given many times.",
    )
    quorum = format_.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="Begin a quorum with this node as its only voter.",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="Join a quorum that others begin.",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="ID@HOST:PORT:DIRECTORY-ID,...",
        help="Begin a quorum with these voters; the same for all nodes.",
    )


def _info(chosen: Namespace) -> int:
    from barnabas.cli.operations.storage import describe_inspected, inspect_node

    inspected = inspect_node(chosen.config)
    print(describe_inspected(inspected))
    return 1 if inspected.problems else 0


def _format(chosen: Namespace) -> int:
    from barnabas.cli.operations.features import parse_levels
    from barnabas.cli.operations.storage import Formatting, format_node

    formatting = Formatting(
        cluster_id=chosen.cluster_id,
        ignore_formatted=chosen.ignore_formatted,
        release=chosen.release_version,
        features=parse_levels(chosen.feature),
        standalone=chosen.standalone,
        no_initial_controllers=chosen.no_initial_controllers,
        initial_controllers=chosen.initial_controllers,
    )
    for line in format_node(chosen.config, formatting):
        print(line)
    return 0


def _random_uuid(_chosen: Namespace) -> int:
    from barnabas.wire.uuid import random_uuid, to_text

    print(to_text(random_uuid()))
    return 0
