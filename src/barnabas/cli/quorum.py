"""`barnabas quorum`: the controllers, and how far each has come in the metadata log."""

from typing import Any

import click

from barnabas.cli.ask import Asking, bootstrap, converse
from barnabas.cli.tables import echo_table
from barnabas.config.addresses import Endpoint
from barnabas.raft import METADATA_TOPIC
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from barnabas.wire.uuid import ZERO, to_text


@click.group("quorum")
def command() -> None:
    """Look at the controllers."""


@command.command("describe")
@bootstrap
def describe(addresses: list[Endpoint]) -> None:
    """Show who leads the metadata log, who votes, and who lags."""
    response: DescribeQuorumResponse = converse(addresses, ask_quorum)
    quorum = partition_of(response)
    endpoints = {
        node.node_id: ", ".join(f"{each.host}:{each.port}" for each in node.listeners)
        for node in response.nodes
    }
    lags = [quorum.high_watermark - each.log_end_offset for each in quorum.current_voters]
    click.echo(
        f"Leader: {quorum.leader_id}   epoch: {quorum.leader_epoch}   "
        f"high watermark: {quorum.high_watermark}   largest lag of a voter: {max(0, *lags, 0)}"
    )
    echo_table(
        ["NODE", "ROLE", "LOG END", "LAG", "CAUGHT UP", "DIRECTORY", "ADDRESS"],
        [
            _row(replica, role, quorum, endpoints)
            for role, replicas in (
                ("voter", quorum.current_voters),
                ("observer", quorum.observers),
            )
            for replica in replicas
        ],
    )


async def ask_quorum(asking: Asking) -> Any:
    partition = RequestPartitionData(partition_index=0)
    topic = RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return await asking.ask(DescribeQuorumRequest(topics=[topic]))


def partition_of(response: DescribeQuorumResponse) -> ResponsePartitionData:
    """The one partition of the metadata log; ClickException if there is an error in its place."""
    if response.error_code != ErrorCode.NONE:
        code = ErrorCode.of(response.error_code)
        raise click.ClickException(response.error_message or code.name)
    partition = response.topics[0].partitions[0]
    if partition.error_code != ErrorCode.NONE:
        code = ErrorCode.of(partition.error_code)
        raise click.ClickException(partition.error_message or code.name)
    return partition


def _row(
    replica: ReplicaState,
    role: str,
    quorum: ResponsePartitionData,
    endpoints: dict[int, str],
) -> list[object]:
    is_leader = replica.replica_id == quorum.leader_id
    behind_ms = replica.last_fetch_timestamp - replica.last_caught_up_timestamp
    caught_up = "never" if replica.last_caught_up_timestamp < 0 else f"{max(0, behind_ms)} ms ago"
    directory_id = replica.replica_directory_id
    return [
        replica.replica_id,
        "leader" if is_leader else role,
        replica.log_end_offset,
        max(0, quorum.high_watermark - replica.log_end_offset),
        "-" if is_leader else caught_up,
        to_text(directory_id) if directory_id != ZERO else "-",
        endpoints.get(replica.replica_id, "-"),
    ]
