"""connect-distributed: run a worker of a group, in the foreground or with -daemon in the
background."""

import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.daemon import DAEMON, start_daemon

_USAGE = "USAGE: connect-distributed [-daemon] connect-distributed.properties"


@kafka_command
def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if words[:1] == [DAEMON]:
        return start_daemon("connect-distributed", words[1:], "connectDistributed.out")
    if len(words) != 1 or words[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 1
    import asyncio

    from barnabas.cli.connect_worker import parse_worker_config, run_worker
    from barnabas.cli.logs import log_to_stderr
    from barnabas.cli.operations.settings import read_properties

    log_to_stderr()
    config = parse_worker_config(read_properties(words[0]), words[0])
    asyncio.run(run_worker(config, list[Path](), log="standard error"))
    return 0
