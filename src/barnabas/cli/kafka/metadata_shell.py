"""kafka-metadata-shell: browse a snapshot of the cluster metadata."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import PlainParser

if TYPE_CHECKING:
    from barnabas.cli.operations.metadata_shell import MetadataShell

ONE_SHOT_COMMANDS = ("cat", "find", "ls", "tree")
"""The commands that can run without an interactive shell."""


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = PlainParser("kafka-metadata-shell", "The Apache Kafka metadata shell")
    help_text = "The metadata snapshot file to read: a .checkpoint or .log of __cluster_metadata."
    parser.add_argument("--snapshot", "-s", required=True, type=Path, help=help_text)
    parser.add_argument("command", nargs="*", help="The command to run.")
    args = parser.parse(arguments)
    if args.command and args.command[0] not in ONE_SHOT_COMMANDS:
        choices = ", ".join(f"'{command}'" for command in ONE_SHOT_COMMANDS)
        print(f"invalid choice: '{args.command[0]}' (choose from {choices})", file=sys.stderr)
        return 1
    from barnabas.cli.operations.metadata_shell import MetadataShell, image_tree, load_image

    shell = MetadataShell(image_tree(load_image(args.snapshot)))
    if args.command:
        for line in shell.run(args.command):
            print(line)
        return 0
    return _run_interactive(shell)


def _run_interactive(shell: "MetadataShell") -> int:
    """Runs commands until `exit` or the end of the input."""
    with suppress(ImportError):
        _enable_completion(shell)
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
        for output_line in shell.run(line.split()):
            print(output_line)


def _enable_completion(shell: "MetadataShell") -> None:
    """Enables completion by the tab key, where readline is available."""
    import readline

    def complete(prefix: str, state: int) -> str | None:
        names = shell.complete(prefix)
        return names[state] if state < len(names) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
