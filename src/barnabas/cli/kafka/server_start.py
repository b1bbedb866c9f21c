"""kafka-server-start: run a node in the foreground, or with -daemon in the background."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser

DAEMON = "-daemon"


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
        return _start_daemon(words[1:])
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


def _start_daemon(arguments: Sequence[str]) -> int:
    """Starts a process whose output goes to kafkaServer.out in $LOG_DIR or `logs`."""
    directory = Path(os.environ.get("LOG_DIR", "logs"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        output = (directory / "kafkaServer.out").open("ab")
    except OSError as error:
        print(f"{directory}: {error.strerror}. Set LOG_DIR to another directory.", file=sys.stderr)
        return 1
    with output:
        subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli.kafka", "kafka-server-start", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return 0
