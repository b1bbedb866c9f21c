"""`barnabas cluster`: the brokers, and what of the data has fewer copies than it should."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from barnabas.cli.commands.quorum import NO_CONTROLLER
from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import admin_command

if TYPE_CHECKING:
    from barnabas.cli.operations.cluster import ClusterOverview
    from barnabas.cli.operations.topics import PartitionDetails

SHOWN = 20
"""How many partitions in trouble are listed; the rest are counted."""


@click.group("cluster")
def command() -> None:
    """Look at the brokers and the copies they hold."""


@command.command("describe")
@admin_command
@click.pass_context
def describe(context: click.Context, connection: Connection, display: Display) -> None:
    """Show the brokers, who is in charge, and what is under-replicated.

    Ends with status 1 where there is no active controller, or a partition without a leader.
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
            click.echo("What follows is how things stood when there was one.")
    _show_brokers(display, overview)
    if not display.as_json:
        _show_troubles(display, overview.partitions)
    if overview.quorum is None or any(partition.is_offline for partition in overview.partitions):
        context.exit(1)


def _show_brokers(display: Display, overview: "ClusterOverview") -> None:
    states = [partition.state for partition in overview.partitions]
    led = Counter(state.leader.id for state in states if state.leader is not None)
    held = Counter(replica.id for state in states for replica in state.replicas)
    in_sync = Counter(replica.id for state in states for replica in state.isr)
    display.print_table(
        ["BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "HOLDS", "IN SYNC"],
        [
            (
                broker.id,
                f"{broker.host}:{broker.port}",
                broker.rack,
                "fenced" if broker.id in overview.fenced else "active",
                led[broker.id],
                held[broker.id],
                in_sync[broker.id],
            )
            for broker in overview.brokers
        ],
    )


def _show_troubles(display: Display, partitions: "Sequence[PartitionDetails]") -> None:
    from barnabas.cli.operations.cluster import (
        OFFLINE,
        PARTITION_PROBLEMS,
        UNDER_MIN_ISR,
        problem_of,
    )

    troubled = [
        partition
        for kind in PARTITION_PROBLEMS
        for partition in partitions
        if problem_of(partition) == kind
    ]
    counts = Counter(map(problem_of, troubled))
    elsewhere = sum(
        partition.state.leader is not None
        and partition.state.leader.id != partition.state.replicas[0].id
        for partition in partitions
    )
    short = sum(counts.values()) - counts[OFFLINE]
    click.echo(
        f"Partitions: {len(partitions)}   without a leader: {counts[OFFLINE]}   "
        f"under-replicated: {short}   {UNDER_MIN_ISR}: {counts[UNDER_MIN_ISR]}   "
        f"not led by the preferred replica: {elsewhere}"
    )
    if not troubled:
        return
    display.print_table(
        ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "TROUBLE"],
        [
            (
                f"{partition.topic}-{partition.state.id}",
                "none" if partition.state.leader is None else partition.state.leader.id,
                ",".join(str(replica.id) for replica in partition.state.replicas),
                ",".join(str(replica.id) for replica in partition.state.isr) or "none",
                problem_of(partition),
            )
            for partition in troubled[:SHOWN]
        ],
    )
    if len(troubled) > SHOWN:
        click.echo(f"and {len(troubled) - SHOWN} more")
