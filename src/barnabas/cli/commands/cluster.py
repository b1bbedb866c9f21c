"""`barnabas cluster`: the brokers, their replicas, and the partitions with problems."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from barnabas.cli.commands.quorum import NO_CONTROLLER
from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import CommandGroup, admin_command

if TYPE_CHECKING:
    from barnabas.cli.operations.cluster import ClusterOverview
    from barnabas.cli.operations.topics import PartitionDetails

MAX_PARTITIONS_LISTED = 20
"""Partitions with problems beyond this number are only counted."""


@click.group("cluster", cls=CommandGroup)
def command() -> None:
    """Describe the brokers and the replicas they hold."""


@command.command("describe")
@admin_command
@click.pass_context
def describe(context: click.Context, connection: Connection, display: Display) -> None:
    """Show the brokers, the active controller, and the partitions with problems.

    Exits with status 1 if no controller is active or a partition is offline.

    \b
      barnabas cluster describe -b localhost:9192
    """
    from barnabas.cli.operations.cluster import describe_cluster

    overview = connection.run(describe_cluster)
    if not display.as_json:
        click.echo(f"Cluster: {overview.cluster_id}")
        if overview.quorum is not None:
            voters = sorted(voter.replica_id for voter in overview.quorum.metadata.voters)
            leader = overview.quorum.metadata.leader_id
            click.echo(f"Controller: {leader} of {', '.join(map(str, voters))}")
        else:
            click.echo(f"Controller: {NO_CONTROLLER}")
            click.echo("Below is the last state that the brokers received from a controller.")
    _show_brokers(display, overview)
    if not display.as_json:
        _show_problems(display, overview.partitions)
    if overview.quorum is None or any(partition.is_offline for partition in overview.partitions):
        context.exit(1)


def _show_brokers(display: Display, overview: "ClusterOverview") -> None:
    from barnabas.cli.operations.cluster import format_address

    states = [partition.state for partition in overview.partitions]
    leader_count = Counter(state.leader.id for state in states if state.leader is not None)
    replica_count = Counter(replica.id for state in states for replica in state.replicas)
    in_sync_count = Counter(replica.id for state in states for replica in state.isr)
    display.print_table(
        ["BROKER", "ADDRESS", "PID", "RACK", "STATE", "LEADERS", "REPLICAS", "IN SYNC"],
        [
            (
                broker.id,
                format_address(broker.host, broker.port),
                overview.pids.get(broker.id),
                broker.rack,
                "fenced" if broker.id in overview.fenced else "active",
                leader_count[broker.id],
                replica_count[broker.id],
                in_sync_count[broker.id],
            )
            for broker in overview.brokers
        ],
    )


def _show_problems(display: Display, partitions: "Sequence[PartitionDetails]") -> None:
    from barnabas.cli.operations.cluster import (
        OFFLINE,
        PARTITION_PROBLEMS,
        UNDER_MIN_ISR,
        problem_of,
    )

    affected = [
        partition
        for kind in PARTITION_PROBLEMS
        for partition in sorted(partitions, key=_is_internal)
        if problem_of(partition) == kind
    ]
    counts = Counter(map(problem_of, affected))
    not_preferred = sum(
        partition.state.leader is not None
        and partition.state.leader.id != partition.state.replicas[0].id
        for partition in partitions
    )
    under_replicated = sum(counts.values()) - counts[OFFLINE]
    click.echo(
        f"Partitions: {len(partitions)}   offline: {counts[OFFLINE]}   "
        f"under-replicated: {under_replicated}   {UNDER_MIN_ISR}: {counts[UNDER_MIN_ISR]}   "
        f"not led by the preferred replica: {not_preferred}"
    )
    if not affected:
        return
    display.print_table(
        ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "PROBLEM"],
        [
            (
                f"{partition.topic}-{partition.state.id}",
                "none" if partition.state.leader is None else partition.state.leader.id,
                ",".join(str(replica.id) for replica in partition.state.replicas),
                ",".join(str(replica.id) for replica in partition.state.isr) or "none",
                problem_of(partition),
            )
            for partition in affected[:MAX_PARTITIONS_LISTED]
        ],
    )
    if len(affected) > MAX_PARTITIONS_LISTED:
        more = len(affected) - MAX_PARTITIONS_LISTED
        click.echo(f"and {more} more: see kafka-topics.sh --describe --under-replicated-partitions")


def _is_internal(partition: "PartitionDetails") -> bool:
    """Internal topics come last: they have the most partitions."""
    return partition.topic.startswith("__")
