"""`barnabas quorum`: the metadata quorum, its voters and observers."""

from typing import TYPE_CHECKING

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import CommandGroup, admin_command

if TYPE_CHECKING:
    from barnabas.cli.operations.cluster import QuorumStatus
    from barnabas.client.admin.cluster import ReplicaState

NO_CONTROLLER = (
    "no controller is active: a majority of the voters must run and reach each other; see their "
    "logs for the reason"
)
HEAD = [
    "NODE",
    "ROLE",
    "LOG END OFFSET",
    "LAG",
    "LAST FETCH",
    "LAST CAUGHT UP",
    "DIRECTORY ID",
    "ENDPOINTS",
]


@click.group("quorum", cls=CommandGroup)
def command() -> None:
    """Describe the metadata quorum."""


@command.command("describe")
@admin_command
def describe(connection: Connection, display: Display) -> None:
    """Show the leader, the voters and the observers of the metadata log, and their lag.

    \b
      barnabas quorum describe
    """
    from barnabas.cli.operations.cluster import try_describe_quorum

    quorum = connection.run(try_describe_quorum)
    if quorum is None:
        raise CommandError(NO_CONTROLLER)
    metadata = quorum.metadata
    if not display.as_json:
        unresponsive = ", ".join(map(str, quorum.unresponsive)) or "none"
        click.echo(
            f"Leader: {metadata.leader_id}   epoch: {metadata.leader_epoch}   "
            f"high watermark: {metadata.high_watermark}"
        )
        click.echo(
            f"Voters: {len(metadata.voters)}   majority: {len(metadata.voters) // 2 + 1}   "
            f"unresponsive: {unresponsive}"
        )
    roles = [("voter", voter) for voter in metadata.voters]
    roles += [("observer", observer) for observer in metadata.observers]
    display.print_table(HEAD, [_row(quorum, role, replica) for role, replica in roles])


def _row(quorum: "QuorumStatus", role: str, replica: "ReplicaState") -> list[object]:
    from barnabas.cli.operations.cluster import format_directory_id

    endpoints = quorum.metadata.nodes.get(replica.replica_id, [])
    return [
        replica.replica_id,
        "leader" if replica.replica_id == quorum.metadata.leader_id else role,
        *_progress(quorum, replica),
        format_directory_id(replica),
        ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints) or None,
    ]


def _progress(quorum: "QuorumStatus", replica: "ReplicaState") -> list[object]:
    """Returns log end offset, lag, last fetch time and last caught-up time of a replica."""
    if replica.log_end_offset < 0:
        return [None, None, "never", "never"]
    return [
        replica.log_end_offset,
        quorum.log_end_offset - replica.log_end_offset,
        _ago(quorum.now_ms, replica.last_fetch_timestamp),
        _ago(quorum.now_ms, replica.last_caught_up_timestamp),
    ]


def _ago(now_ms: int, timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "never"
    passed_ms = now_ms - timestamp_ms
    return f"{max(0, passed_ms)} ms ago" if passed_ms < 10_000 else f"{passed_ms // 1000} s ago"
