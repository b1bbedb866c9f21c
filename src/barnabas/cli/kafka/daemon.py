"""Starting a Kafka command in the background, as `-daemon` does."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

DAEMON = "-daemon"


def start_daemon(command: str, arguments: Sequence[str], output_name: str) -> int:
    """Starts a process whose output goes to a file in $LOG_DIR or `logs`. Returns a status."""
    directory = Path(os.environ.get("LOG_DIR", "logs"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        output = (directory / output_name).open("ab")
    except OSError as error:
        print(f"{directory}: {error.strerror}. Set LOG_DIR to another directory.", file=sys.stderr)
        return 1
    with output:
        subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli.kafka", command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return 0
