"""kafka-server-start: run a node in the foreground, or with -daemon in the background."""

import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.daemon import DAEMON, start_daemon
from barnabas.cli.kafka.options import FlatParser


@kafka_command
def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if not words:
        print(
            "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*",
            file=sys.stderr,
        )
        return 1
    if words[0] == DAEMON:
        return start_daemon("kafka-server-start", words[1:], "kafkaServer.out")
    return _run(words)


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-server-start", "[-daemon] server.properties [--override property=value]*"
    )
    parser.add_argument("file", nargs="?", type=Path, help="The node's server.properties.")
    parser.add_value(
        "--override",
        "property=value",
        "A property that overrides the file; can be repeated.",
        action="append",
        default=[],
    )
    return parser


def _run(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    if args.file is None:
        parser.usage_error("Give a server.properties file.")
    from barnabas.cli.foreground import run_node_from_file
    from barnabas.cli.logs import log_to_stderr
    from barnabas.cli.operations.settings import parse_pairs

    log_to_stderr()
    run_node_from_file(args.file, parse_pairs(args.override))
    return 0
