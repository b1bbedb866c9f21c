"""`barnabas cluster`: the brokers, and what of the data has fewer copies than it should."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from barnabas.cli.ask import Conversation, bootstrap, converse
from barnabas.cli.quorum import NO_CONTROLLER, ask_quorum, partition_of
from barnabas.cli.tables import echo_table
from barnabas.config.addresses import Endpoint
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
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
TOPIC = 2
MIN_IN_SYNC = "min.insync.replicas"

# What can be wrong with a partition, the worst first as they are listed.
LEADERLESS = "no leader"
BELOW = f"below {MIN_IN_SYNC}"
SHORT = "under-replicated"
_TROUBLES = (LEADERLESS, BELOW, SHORT)


class Answers(NamedTuple):
    cluster: DescribeClusterResponse
    metadata: MetadataResponse
    configs: DescribeConfigsResponse
    quorum: DescribeQuorumResponse | None


class Partition(NamedTuple):
    """One partition, and how many replicas must be in sync for acks=all."""

    name: str
    state: MetadataResponsePartition
    needed: int

    @property
    def trouble(self) -> str | None:
        in_sync, replicas = len(self.state.isr_nodes), len(self.state.replica_nodes)
        if self.state.leader_id == NO_LEADER:
            return LEADERLESS
        if in_sync < min(self.needed, replicas):
            return BELOW
        return SHORT if in_sync < replicas else None


@click.group("cluster")
def command() -> None:
    """Look at the brokers and the copies they hold."""


@command.command("describe")
@bootstrap
@click.pass_context
def describe(context: click.Context, servers: list[Endpoint]) -> None:
    """Show the brokers, who is in charge, and what is under-replicated.

    Ends with status 1 where there is no active controller, or a partition without a leader.
    """
    answers = converse(servers, _ask)
    partitions = list(_partitions(answers))
    click.echo(f"Cluster: {answers.cluster.cluster_id}")
    if answers.quorum is not None:
        quorum = partition_of(answers.quorum)
        voters = sorted(each.replica_id for each in quorum.current_voters)
        click.echo(f"Controller: {quorum.leader_id} of {', '.join(map(str, voters))}")
    else:
        click.echo(f"Controller: {NO_CONTROLLER}")
        click.echo("What follows is how things stood when there was one.")
    _echo_brokers(answers.cluster.brokers, [each.state for each in partitions])
    _echo_troubles(partitions)
    if answers.quorum is None or any(each.state.leader_id == NO_LEADER for each in partitions):
        context.exit(1)


async def _ask(conversation: Conversation) -> Answers:
    """All from one broker; the quorum last, for that may not be answered."""
    cluster = await conversation.ask(DescribeClusterRequest(include_fenced_brokers=True))
    metadata = await conversation.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    configs = await conversation.ask(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=TOPIC,
                    resource_name=topic.name,
                    configuration_keys=[MIN_IN_SYNC],
                )
                for topic in metadata.topics
            ]
        )
    )
    return Answers(cluster, metadata, configs, await ask_quorum(conversation))


def _partitions(answers: Answers) -> Iterator[Partition]:
    needed = {
        result.resource_name: int(config.value or 1)
        for result in answers.configs.results
        for config in result.configs
    }
    for topic in sorted(answers.metadata.topics, key=lambda topic: topic.name or ""):
        for state in sorted(topic.partitions, key=lambda state: state.partition_index):
            name = f"{topic.name}-{state.partition_index}"
            yield Partition(name, state, needed.get(topic.name or "", 1))


def _echo_brokers(
    brokers: Sequence[DescribeClusterBroker], partitions: Sequence[MetadataResponsePartition]
) -> None:
    led = Counter(each.leader_id for each in partitions)
    held = Counter(replica for each in partitions for replica in each.replica_nodes)
    in_sync = Counter(replica for each in partitions for replica in each.isr_nodes)
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


def _echo_troubles(partitions: Sequence[Partition]) -> None:
    troubled = [each for kind in _TROUBLES for each in partitions if each.trouble == kind]
    counts = Counter(each.trouble for each in troubled)
    elsewhere = sum(
        each.state.leader_id not in (NO_LEADER, each.state.replica_nodes[0]) for each in partitions
    )
    click.echo(
        f"Partitions: {len(partitions)}   without a leader: {counts[LEADERLESS]}   "
        f"under-replicated: {counts[SHORT] + counts[BELOW]}   {BELOW}: {counts[BELOW]}   "
        f"not led by the preferred replica: {elsewhere}"
    )
    if not troubled:
        return
    echo_table(
        ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "TROUBLE"],
        [
            (
                each.name,
                each.state.leader_id if each.state.leader_id != NO_LEADER else "none",
                ",".join(map(str, each.state.replica_nodes)),
                ",".join(map(str, each.state.isr_nodes)) or "none",
                each.trouble,
            )
            for each in troubled[:SHOWN]
        ],
    )
    if len(troubled) > SHOWN:
        click.echo(f"and {len(troubled) - SHOWN} more")
