"""What every Kafka command does around its own work, so that none ends with a traceback."""

import functools
import sys
from collections.abc import Callable, Sequence

from barnabas.cli.kafka.output import exit_on_error_to_stderr
from barnabas.cli.operations.errors import require_utf8
from barnabas.cli.signals import exit_on_signal, open_standard_streams

Main = Callable[[Sequence[str]], int]
"""Does a command with its arguments, and returns the exit status."""


def kafka_command(main: Main) -> Callable[[Sequence[str] | None], int]:
    """Makes a `main` that can be installed as a script.

    An expected error is one line on standard error and status 1, unless `main` prints it itself. A
    closed output ends the command, and so do Ctrl-C and SIGTERM, with the status Unix has for them.
    """

    @functools.wraps(main)
    def run(arguments: Sequence[str] | None = None) -> int:
        open_standard_streams()
        words = sys.argv[1:] if arguments is None else list(arguments)
        with exit_on_signal(), exit_on_error_to_stderr():
            require_utf8(words)
            return main(words)
        return 0

    return run
