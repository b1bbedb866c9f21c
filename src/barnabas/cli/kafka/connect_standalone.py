"""connect-standalone: run a worker alone, with the connectors of files.

Unlike Kafka's, it keeps settings, positions and statuses in topics: a connector that was created
goes on after a restart, and no file with positions can be lost.
"""

from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.daemon import DAEMON, start_daemon
from barnabas.cli.kafka.options import FlatParser


@kafka_command
def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if words[:1] == [DAEMON]:
        return start_daemon("connect-standalone", words[1:], "connectStandalone.out")
    parser = FlatParser(
        "connect-standalone",
        "[-daemon] connect-standalone.properties [connector1.properties connector2.json ...]",
    )
    parser.add_argument("file", nargs="?", type=Path, help="The worker's properties.")
    parser.add_argument("connectors", nargs="*", type=Path, help="Files of connectors.")
    args = parser.parse(words)
    if args.file is None:
        parser.usage_error("Give a file of the worker's properties.")
    import asyncio

    from barnabas.cli.connect_worker import (
        STANDALONE_DEFAULTS,
        parse_worker_config,
        run_worker,
    )
    from barnabas.cli.logs import log_to_stderr
    from barnabas.cli.operations.settings import read_properties

    log_to_stderr()
    properties = {**STANDALONE_DEFAULTS, **read_properties(args.file)}
    config = parse_worker_config(properties, str(args.file))
    asyncio.run(run_worker(config, args.connectors, log="standard error"))
    return 0
