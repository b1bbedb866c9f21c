"""connect-distributed: run a worker of a group, in the foreground or with -daemon in the
background."""

from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.daemon import DAEMON, start_daemon
from barnabas.cli.kafka.options import FlatParser


@kafka_command
def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if words[:1] == [DAEMON]:
        return start_daemon("connect-distributed", words[1:], "connectDistributed.out")
    parser = FlatParser("connect-distributed", "[-daemon] connect-distributed.properties")
    parser.add_argument("file", nargs="?", type=Path, help="The worker's properties.")
    args = parser.parse(words)
    if args.file is None:
        parser.usage_error("Give a file of the worker's properties.")
    import asyncio

    from barnabas.cli.connect_worker import parse_worker_config, run_worker
    from barnabas.cli.logs import log_to_stderr
    from barnabas.cli.operations.settings import read_properties

    log_to_stderr()
    config = parse_worker_config(read_properties(args.file), str(args.file))
    asyncio.run(run_worker(config, [], log="standard error"))
    return 0
