"""kafka-metadata-shell: walk through a snapshot of the cluster's metadata."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.options import PlainParser
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.cli.operations.metadata_shell import MetadataShell

AT_ONCE = ("cat", "find", "ls", "tree")
"""The commands that make sense without a place to start from."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = PlainParser("kafka-metadata-shell", "The Apache Kafka metadata shell")
    says = "The metadata snapshot file to read: a .checkpoint or .log of __cluster_metadata."
    options.add_argument("--snapshot", "-s", required=True, type=Path, help=says)
    options.add_argument("command", nargs="*", help="The command to run.")
    args = options.parse(arguments)
    if args.command and args.command[0] not in AT_ONCE:
        choices = ", ".join(f"'{command}'" for command in AT_ONCE)
        print(f"invalid choice: '{args.command[0]}' (choose from {choices})", file=sys.stderr)
        return 1
    from barnabas.cli.operations.metadata_shell import MetadataShell, load_image
    from barnabas.cli.operations.metadata_shell.tree import image_tree

    try:
        shell = MetadataShell(image_tree(load_image(args.snapshot)))
    except CommandError as error:
        print(error, file=sys.stderr)
        return 1
    if args.command:
        for line in shell.run(args.command):
            print(line)
        return 0
    return _converse(shell)


def _converse(shell: "MetadataShell") -> int:
    """Line by line, until `exit` or the end of the input."""
    with suppress(ImportError):
        _complete(shell)
    print("[ Kafka Metadata Shell ]")
    while True:
        try:
            line = input(">> ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if line in ("exit", "quit"):
            return 0
        shell.history.append(line)
        for line_out in shell.run(line.split()):
            print(line_out)


def _complete(shell: "MetadataShell") -> None:
    """Let the tab key finish names, where the terminal can."""
    import readline

    def finish(prefix: str, state: int) -> str | None:
        names = shell.complete(prefix)
        return names[state] if state < len(names) else None

    readline.set_completer(finish)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
