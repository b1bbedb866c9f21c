"""kafka-server-stop: stop the nodes that run on this machine.

`barnabas up --brokers N` stops its nodes itself, one after the other.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser
from barnabas.cli.operations.errors import CommandError


@kafka_command
def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    parser = FlatParser("kafka-server-stop", "Stop the nodes that run on this machine.")
    parser.add_value("--process-role", "role", "Only those with these roles (process.roles).")
    parser.add_value("--node-id", "id", "Only the one with this id.")
    args = parser.parse_args(words)
    if args.help or args.version:
        parser.parse(words)
    if args.node_id and args.process_role:
        print(
            "When both node-id and process-role are provided, the value for node-id will take "
            "precedence"
        )
    nodes = find_node_processes()
    if not nodes:
        print("No kafka server to stop")
        return 1
    if args.node_id is not None:
        nodes = [node for node in nodes if node.settings().get("node.id") == args.node_id]
    elif args.process_role is not None:
        role = args.process_role
        nodes = [node for node in nodes if node.settings().get("process.roles") == role]
    else:
        nodes = _without_children(nodes)
    number = signal.Signals[f"SIG{os.environ.get('SIGNAL', 'TERM').removeprefix('SIG')}"]
    for node in nodes:
        print(f"Stopping process {node.pid} ({' '.join(node.arguments)})", file=sys.stderr)
        os.kill(node.pid, number)
    return 0


def _without_children(nodes: "Sequence[NodeProcess]") -> "list[NodeProcess]":
    """Leaves out nodes whose parent stops them: a second signal would kill them."""
    pids = {node.pid for node in nodes}
    return [node for node in nodes if node.parent not in pids]


_START_COMMANDS = ("up", "start")
_SCRIPTS = ("kafka-server-start", "kafka-server-start.sh")
_PROC = Path("/proc")


@dataclass(slots=True, frozen=True)
class NodeProcess:
    """A process of a node, or of `barnabas up` with several nodes."""

    pid: int
    parent: int
    directory: Path
    """Its working directory, which its file is relative to."""
    arguments: tuple[str, ...]
    """`up ...`, or `start FILE ...`."""

    def settings(self) -> dict[str, str]:
        """Returns its server.properties with overrides; empty if there is none."""
        from barnabas.cli.operations.settings import read_properties

        files = [argument for argument in self.arguments[1:] if argument.endswith(".properties")]
        if self.arguments[0] == "up":
            return {"node.id": "1", "process.roles": "broker,controller"}
        if not files:
            return {}
        try:
            return read_properties(self.directory / files[0]) | dict(self._overrides())
        except CommandError:
            return {}

    def _overrides(self) -> Iterator[tuple[str, str]]:
        for flag, pair in zip(self.arguments, self.arguments[1:], strict=False):
            if flag in ("--set", "--override"):
                key, _, value = pair.partition("=")
                yield key, value


def find_node_processes() -> list[NodeProcess]:
    """Returns the node processes that /proc shows to this user."""
    processes = (
        _read_process(int(process.name)) for process in _PROC.iterdir() if process.name.isdigit()
    )
    return [node for node in processes if node is not None and node.pid != os.getpid()]


def _read_process(pid: int) -> NodeProcess | None:
    try:
        command = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
        arguments = _start_arguments(command.split("\0")[:-1])
        if arguments is None:
            return None
        parent = int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        directory = (_PROC / str(pid) / "cwd").readlink()
    except OSError:
        return None  # it has exited, or belongs to another user
    return NodeProcess(pid, parent, directory, arguments)


def _start_arguments(command: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the arguments of a command line that starts a node."""
    if not command or not Path(command[0]).name.startswith(("python", "barnabas", "kafka-")):
        return None
    for position, word in enumerate(command[:4]):
        name, rest = Path(word).name, tuple(command[position + 1 :])
        if name in ("barnabas", "barnabas.cli") and rest[:1] and rest[0] in _START_COMMANDS:
            return rest
        if name in _SCRIPTS:
            return ("start", *rest)
    return None
