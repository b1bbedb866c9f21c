"""connect-standalone: run a worker alone, with the connectors of files.

Unlike Kafka's, it keeps settings, positions and statuses in topics: a connector that was created
goes on after a restart, and no file with positions can be lost.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.daemon import DAEMON, start_daemon

_USAGE = (
    "USAGE: connect-standalone [-daemon] connect-standalone.properties "
    "[connector1.properties connector2.json ...]"
)


@kafka_command
def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if words[:1] == [DAEMON]:
        return start_daemon("connect-standalone", words[1:], "connectStandalone.out")
    if not words or words[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 1
    import asyncio

    from barnabas.cli.connect_worker import (
        STANDALONE_DEFAULTS,
        parse_worker_config,
        run_worker,
    )
    from barnabas.cli.logs import log_to_stderr
    from barnabas.cli.operations.settings import read_properties

    log_to_stderr()
    properties = {**STANDALONE_DEFAULTS, **read_properties(words[0])}
    config = parse_worker_config(properties, words[0])
    asyncio.run(run_worker(config, [Path(word) for word in words[1:]], log="standard error"))
    return 0
