"""`barnabas cluster`: the brokers, and what of the data has fewer copies than it should."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from barnabas.cli.ask import Asking, bootstrap, converse
from barnabas.cli.quorum import ask_quorum, partition_of
from barnabas.cli.tables import echo_table
from barnabas.config.addresses import Endpoint
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.wire.messages.describe_quorum import DescribeQuorumResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
)

SHOWN = 20
"""How many partitions in trouble are listed; the rest are counted."""

NO_LEADER = -1


class Answers(NamedTuple):
    cluster: DescribeClusterResponse
    metadata: MetadataResponse
    quorum: DescribeQuorumResponse


@click.group("cluster")
def command() -> None:
    """Look at the brokers and the copies they hold."""


@command.command("describe")
@bootstrap
def describe(addresses: list[Endpoint]) -> None:
    """Show the brokers, who is in charge, and what is under-replicated."""
    answers: Answers = converse(addresses, _ask)
    quorum = partition_of(answers.quorum)
    voters = sorted(each.replica_id for each in quorum.current_voters)
    partitions = list(_partitions(answers.metadata))
    click.echo(f"Cluster: {answers.cluster.cluster_id}")
    click.echo(f"Controller: {quorum.leader_id} of {', '.join(map(str, voters))}")
    _echo_brokers(answers.cluster.brokers, [partition for _, partition in partitions])
    _echo_troubles(partitions)


async def _ask(asking: Asking) -> Answers:
    return Answers(
        await asking.ask(DescribeClusterRequest(include_fenced_brokers=True)),
        await asking.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False)),
        await ask_quorum(asking),
    )


def _partitions(metadata: MetadataResponse) -> Iterator[tuple[str, MetadataResponsePartition]]:
    for topic in sorted(metadata.topics, key=lambda topic: topic.name or ""):
        for partition in sorted(topic.partitions, key=lambda each: each.partition_index):
            yield f"{topic.name}-{partition.partition_index}", partition


def _echo_brokers(
    brokers: list[DescribeClusterBroker], partitions: list[MetadataResponsePartition]
) -> None:
    led = Counter(partition.leader_id for partition in partitions)
    held: Counter[int] = Counter(
        replica for partition in partitions for replica in partition.replica_nodes
    )
    in_sync: Counter[Any] = Counter(
        replica for partition in partitions for replica in partition.isr_nodes
    )
    echo_table(
        ["BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "HOLDS", "IN SYNC"],
        [
            (
                broker.broker_id,
                f"{broker.host}:{broker.port}",
                broker.rack or "-",
                "fenced" if broker.is_fenced else "active",
                led[broker.broker_id],
                held[broker.broker_id],
                in_sync[broker.broker_id],
            )
            for broker in sorted(brokers, key=lambda broker: broker.broker_id)
        ],
    )


def _echo_troubles(partitions: list[tuple[str, MetadataResponsePartition]]) -> None:
    leaderless = [each for each in partitions if each[1].leader_id == NO_LEADER]
    short = [each for each in partitions if len(each[1].isr_nodes) < len(each[1].replica_nodes)]
    elsewhere = sum(
        partition.leader_id not in (NO_LEADER, partition.replica_nodes[0])
        for _, partition in partitions
    )
    click.echo(
        f"Partitions: {len(partitions)}   without a leader: {len(leaderless)}   "
        f"under-replicated: {len(short)}   not led by the preferred replica: {elsewhere}"
    )
    troubled = dict([*leaderless, *short])
    if not troubled:
        return
    echo_table(
        ["PARTITION", "LEADER", "REPLICAS", "IN SYNC"],
        [
            (
                name,
                partition.leader_id if partition.leader_id != NO_LEADER else "none",
                ",".join(map(str, partition.replica_nodes)),
                ",".join(map(str, partition.isr_nodes)) or "none",
            )
            for name, partition in list(troubled.items())[:SHOWN]
        ],
    )
    if len(troubled) > SHOWN:
        click.echo(f"and {len(troubled) - SHOWN} more")
