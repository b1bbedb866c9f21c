"""kafka-server-stop: tell the nodes that run on this machine to stop.

Those that `barnabas up --brokers N` watches over are told by it, one after the other.
"""

import os
import signal
import sys
from collections.abc import Sequence

from barnabas.cli.kafka.options import Flat
from barnabas.cli.work.running import RunningNode, running_nodes


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = Flat("kafka-server-stop", "Stop the nodes that run on this machine.")
    options.value("--process-role", "role", "Only those with these roles (process.roles).")
    options.value("--node-id", "id", "Only the one with this id.")
    chosen = options.parse_args(given)
    if chosen.help or chosen.version:
        options.parse(given)
    if chosen.node_id and chosen.process_role:
        print(
            "When both node-id and process-role are provided, the value for node-id will take "
            "precedence"
        )
    nodes = running_nodes()
    if not nodes:
        print("No kafka server to stop")
        return 1
    if chosen.node_id:
        nodes = [each for each in nodes if each.settings().get("node.id") == chosen.node_id]
    elif chosen.process_role:
        role = chosen.process_role
        nodes = [each for each in nodes if each.settings().get("process.roles") == role]
    else:
        nodes = _not_watched_over(nodes)
    number = signal.Signals[f"SIG{os.environ.get('SIGNAL', 'TERM').removeprefix('SIG')}"]
    for node in nodes:
        os.kill(node.pid, number)
    return 0


def _not_watched_over(nodes: Sequence[RunningNode]) -> list[RunningNode]:
    """A second signal would stop those at once that their parent is stopping in order."""
    pids = {node.pid for node in nodes}
    return [node for node in nodes if node.parent not in pids]
